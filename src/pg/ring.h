#ifndef POSTERIOR_RING_H
#define POSTERIOR_RING_H
#define POSTERIOR_RINGS 64
typedef struct PosteriorRing { int unused; } PosteriorRing;
#endif
