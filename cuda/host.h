/*
 * host.h: the host part of the CUDA device (src/server/device_api.h): what its files share.
 *
 * device.c is the table, memory and waiting; weights.c brings a model to the device; encoding.c
 * builds and extends encodings; launch.c chooses the shape of a launch; questions.c and marginals.c
 * answer; features.c makes of rows what the network reads; layers.c has models that are computed
 * layer by layer.
 * Statistics, scaling and the cells of the row tokeniser are the engine's own functions, on the
 * host.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_HOST_H
#define CUDA_HOST_H

#include "server/device_api.h"
#include "engine/inference/encode.h"
#include "gpu.h"

/* Memory of what a queue of the device is asked for, kept for the next call. */
typedef struct CudaRoom
{
	void	   *scratch;		/* device memory */
	size_t		scratch_bytes,
				scratch_used;
	void	   *staging;		/* host memory for copies */
	size_t		staging_bytes,
				staging_used;
	bool		busy;			/* the device may be using it, while the other room is begun */
} CudaRoom;

struct TnpDevice
{
	TnpDeviceConfig config;
	GpuFacts	facts;
	size_t		limit,
				used;			/* bytes of device memory */
	bool		lost;
	bool		again;			/* the call in progress is to be planned anew, for smaller teams */
	CudaRoom	rooms[GPU_QUEUES];
	CudaRoom   *room;			/* the one that was begun last */
};

struct TnpDeviceModel
{
	TnpDevice  *device;
	TnpModel   *model;
	CudaModel	shape;			/* as launches are given it */
	int			first_operand;	/* columns of the first operand buffer that are used */
	void	   *weights;		/* device memory */
	size_t		bytes;
	bool		layered;		/* computed layer by layer: weights lie as the library reads them */
	CudaLayer  *layers;			/* then a copy on the host; else NULL */
	bool		halves_on_host; /* the embedder's part of the features is computed by the engine */
};

struct TnpDeviceEncoding
{
	TnpDeviceModel *model;
	int64_t		n,
				prefix,
				capacity;		/* slots */
	int			n_features;
	TnpColumnKind *kinds;
	/* rows, for models that encode again when a chain's buffer is full; else NULL */
	double	   *x,
			   *y;
	TnpStats	stats;
	bool		borrowed_stats;
	CudaCache	cache;
	size_t		bytes;			/* of device memory */
};

/* ---- device.c -------------------------------------------------------------------------------- */

/* Device memory within the limit; TNP_NO_MEMORY has changed nothing. */
TnpStatus	cuda_take(TnpDevice *device, size_t bytes, void **memory, TnpError *error);
void		cuda_give(TnpDevice *device, void *memory, size_t bytes);

/* What a failed GPU call means for the caller. */
TnpStatus	cuda_failed(TnpDevice *device, GpuResult result, TnpError *error);

/* Until everything that this queue was asked for is done, polling for interrupts. */
TnpStatus	cuda_wait(TnpDevice *device, int queue, TnpError *error);

/* Until all queues have done everything, whatever interrupts; says how the device is then. */
GpuResult	cuda_drain(TnpDevice *device);

/*
 * Room for what a queue is asked for next: device memory and host memory for copies, both given out
 * piece by piece and together taken back by the next cuda_begin of this queue. Nothing of them may
 * be in use by the device then; what the other queue uses is left alone if its room is busy.
 */
TnpStatus	cuda_begin(TnpDevice *device, int queue, size_t scratch, size_t staging,
					   TnpError *error);
void	   *cuda_scratch(TnpDevice *device, size_t bytes);
void	   *cuda_staging(TnpDevice *device, size_t bytes);

/* Bytes that a piece occupies. */
static inline size_t
cuda_piece(size_t bytes)
{
	return (bytes + 255) / 256 * 256;
}

/* ---- weights.c ------------------------------------------------------------------------------- */

/*
 * Bring model's weights to the device; fails with TNP_BAD_CONFIG where there are no kernels for it.
 * m->model is set.
 */
TnpStatus	cuda_load_weights(TnpDeviceModel *m, TnpPrecision precision, TnpError *error);

/* ---- launch.c -------------------------------------------------------------------------------- */

/*
 * The shape of a launch, chosen for n rows (streams of a chain); fills the parts of walk that
 * follow from it.
 */
typedef struct CudaPlan
{
	GpuKernel	kernel;
	int			shared;			/* bytes per block */
	int			arrived;		/* counters, zeros, that follow the flags */
	/* partial results in memory, 0: none; of a model computed layer by layer, its operands */
	size_t		part_bytes;
	size_t		raw_bytes,		/* raw outputs and parameters of all tiles */
				params_bytes;
	size_t		own_bytes;		/* private keys and values of all tiles */
	size_t		state_bytes,	/* states and queries of rows between launches */
				query_bytes;
} CudaPlan;

/* Sizes of the private keys and values of 16 rows' streams, which have so many slots: walk->own. */
void		cuda_own_words(const CudaModel *s, int64_t slots, CudaWalk *walk);

/*
 * keys: largest number of shared slots that a row sees. private_slots: slots of a group of streams,
 * for chains.
 */
TnpStatus	cuda_plan(const TnpDeviceModel *m, int64_t keys, int64_t private_slots, CudaWalk *walk,
					  CudaPlan *plan, TnpError *error);

/*
 * What tests and benchmarks choose instead of cuda_plan, where it is possible; 0: its own choice.
 */
typedef struct CudaForce
{
	int			rows,			/* 16, 32, 64 */
				team;			/* 1, 2, 4, 8 */
	int			split,			/* 1: chunks of keys are tasks of their own; -1: where need be */
				part_in_memory,
				copies,			/* teams that compute the same tile */
				pushes;			/* -1: barriers of the team alone */
} CudaForce;

extern CudaForce cuda_force;

/* Whether tests want keys and values to be asked for when they are needed. */
extern bool cuda_force_late;

/*
 * Launch what was planned. Where the device refuses, the request fails with TNP_BAD_CONFIG and the
 * device goes on; a refused team is given up for good, and cuda_again() then says, once, that the
 * caller should plan the same again, which chooses a smaller one. (device.c)
 */
TnpStatus	cuda_launch(TnpDevice *device, int queue, const CudaPlan *plan, const CudaWalk *walk,
						TnpError *error);
bool		cuda_again(TnpDevice *device);

/* Whether a tile of any height fits the device. */
bool		cuda_fits(const TnpDeviceModel *m);

/* A walk of this encoding's model and first rows, everything else zero. */
CudaWalk	cuda_walk_of(const TnpDeviceEncoding *e, int64_t rows, CudaMode mode);

/* ---- layers.c -------------------------------------------------------------------------------- */

/* Whether models of this shape can be computed layer by layer. */
bool		cuda_layers_can(const CudaModel *shape);

/* Queries of a chunk. */
int64_t		cuda_layers_chunk(void);

/* What cuda_plan() does for models that are. */
TnpStatus	cuda_layers_plan(const TnpDeviceModel *m, CudaWalk *walk, CudaPlan *plan,
							 TnpError *error);

/* Ask for everything that follows the features of rows, or of queries, that were planned. */
TnpStatus	cuda_layers_encode(TnpDeviceModel *m, const CudaWalk *walk, TnpError *error);
TnpStatus	cuda_layers_answer(TnpDeviceModel *m, int queue, const CudaWalk *walk, TnpError *error);

/*
 * Choose how the products of a model are computed; TNP_BAD_CONFIG where they cannot be, or where a
 * row's bits would depend on other rows.
 */
TnpStatus	cuda_layers_check(TnpDeviceModel *m, TnpError *error);

/* Rows whose operands are in memory at once; tests choose fewer. 0: as it is. */
extern int64_t cuda_layer_rows;

/* Whether tests want the models that they load to go this way where others would do. */
extern bool cuda_force_layers;

/* ---- features.c ------------------------------------------------------------------------------ */

/*
 * What the embedder reads of rows [first, first + n), as floats: halves and what the head takes a
 * share of, or scaled features.
 */
int			cuda_x_width(const TnpDeviceModel *m, const TnpStats *stats);

/*
 * What the head takes a share of, where that is no part of these: of a prefix's trees and its
 * regression together. 0: there is none.
 */
int			cuda_prior_width(const TnpDeviceModel *m, const TnpStats *stats);

/* x [n, cuda_x_width], and of rows that are asked about prior [n, cuda_prior_width], or NULL. */
TnpStatus	cuda_fill_x(const TnpDeviceModel *m, const TnpStats *stats, const TnpRows *rows,
						int64_t first, int64_t n, bool in_context, TnpTeam *team, float *x,
						float *prior, TnpError *error);

/*
 * Threads for cuda_fill_x of rows [first, first + n), to be freed with tnp_team_free; NULL where
 * they are not worth it, or not to be had: the calling thread then does everything.
 */
TnpTeam    *cuda_fill_team(const TnpDeviceModel *m, const TnpStats *stats, int64_t first,
						   int64_t n, bool in_context);

/* How many there are, as TnpEnv.threads says it. */
int			cuda_host_threads(void *arg);

/* What tests choose instead; 0: as many as there are processors, up to a few. */
extern int	cuda_threads;

/*
 * Tell a walk where, in such rows x and prior on the device, the numbers of the logistic regression
 * and the trees or of the process lie, what share the head takes of the former, and what a gate to
 * the latter reads of the prefix.
 */
void		cuda_lean(const TnpDeviceModel *m, const TnpStats *stats, const float *x,
					  const float *prior, CudaWalk *walk);

/* ---- encoding.c ------------------------------------------------------------------------------ */

TnpStatus	cuda_encoding_build(TnpDeviceModel *m, const TnpRows *rows, int64_t prefix,
								int64_t capacity, TnpDeviceEncoding **encoding, TnpError *error);
TnpStatus	cuda_encoding_append(TnpDeviceEncoding *e, const TnpRows *rows, TnpError *error);
void		cuda_encoding_free(TnpDeviceEncoding *e);

/*
 * An encoding of e's first `rows` rows and further `more`, all in the prefix, under the same
 * statistics: how a finished block of a chain is merged. It must be freed before e.
 */
TnpStatus	cuda_encoding_merge(const TnpDeviceEncoding *e, int64_t rows, const TnpRows *more,
								TnpDeviceEncoding **merged, TnpError *error);
TnpStatus	cuda_encoding_export(const TnpDeviceEncoding *e, int layer, int64_t first, int64_t n,
								 float *k, float *v, TnpError *error);

/* Rows fit the encoding, as the engine checks it. */
TnpStatus	cuda_rows_check(const TnpDeviceEncoding *e, const TnpRows *rows, bool need_y,
							TnpError *error);

/* ---- questions.c ----------------------------------------------------------------------------- */

TnpStatus	cuda_answer(TnpDeviceEncoding *e, int n, TnpRequest *requests, TnpError *error);

/* ---- marginals.c ----------------------------------------------------------------------------- */

static inline bool
cuda_is_marginal(const TnpRequest *r)
{
	return r->kind == TNP_REQUEST_PREDICT || r->kind == TNP_REQUEST_REDUCE;
}

/*
 * The marginal ones of requests that were checked, whose status is TNP_INTERRUPTED, each of their
 * queries as it is.
 */
TnpStatus	cuda_answer_marginals(TnpDeviceEncoding *e, int n, TnpRequest *requests,
								  TnpError *error);

/* Queries of a launch where there are more; tests choose fewer. 0: as the device is. */
extern int64_t cuda_chunk_rows;

/* ---- variants.c ------------------------------------------------------------------------------ */

/* Whether a request is about a row that lacks a cell which donors lend. */
bool		cuda_wants_variants(const TnpDeviceEncoding *e, const TnpRequest *r);

/* A marginal request of which that is so. */
TnpStatus	cuda_answer_variants(TnpDeviceEncoding *e, const TnpRequest *r, TnpError *error);

/* ---- chains.c -------------------------------------------------------------------------------- */

TnpStatus	cuda_sample(TnpDeviceEncoding *e, TnpRequest *request, TnpError *error);
TnpStatus	cuda_score(TnpDeviceEncoding *e, TnpRequest *request, TnpError *error);

/* Bytes of private keys and values of one launch; tests choose fewer. */
extern size_t cuda_own_bytes;

/* Steps of all orders that a density lays out in host memory at once; tests choose fewer. */
extern int64_t cuda_order_steps;

#endif							/* CUDA_HOST_H */
