/*
 * handle.h: an encoding as a call site holds it: an entry of the cache, its first rows, or one of
 * the session's own.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_HANDLE_H
#define POSTERIOR_HANDLE_H

#include "pg/cache/entries.h"
#include "pg/rows/labels.h"

/* What answers. */
typedef enum PosteriorProvider
{
	POSTERIOR_BY_RULE,
	POSTERIOR_BY_CPU,
	POSTERIOR_BY_DEVICE
} PosteriorProvider;

struct PosteriorContextHandle;
struct TnpRequest;

/* What answers requests about a handle in its place, where it has no encoding of its own. */
typedef struct PosteriorDelegate
{
	void		(*execute) (struct PosteriorContextHandle *e, struct TnpRequest *request);
	/* with the handle; raises nothing */
	void		(*end) (struct PosteriorDelegate *delegate);
} PosteriorDelegate;

/* Encoding and model stay until the handle is released. */
typedef struct PosteriorContextHandle
{
	dlist_node	node;			/* among all handles of this backend */
	PosteriorModel *model;
	PosteriorCachedContext *cached; /* a view of the entry, or the handle's own */
	PosteriorCacheEntry *entry; /* pinned, or NULL */
	PosteriorDelegate *delegate;	/* questions take some of the rows (near_rows.h), or NULL */
	PosteriorCacheEntry *lender;	/* whose model the handle's own encoding has, pinned, or NULL */
	struct PosteriorSolvedSums *solved; /* whose encoding this one shares, pinned, or NULL */
	struct PosteriorContextHandle *other_provider;	/* of these rows, for the other one, or NULL */
	struct PosteriorContextHandle *maker;	/* whose encoding this one shares, or NULL */
	int			views;			/* handles that share this one's, ... */
	bool		released;		/* ... the last of which releases it then */
	PosteriorProvider only,		/* what shall answer, whatever the rule says (route.c) */
				by;				/* what answered last */
	/* work of small requests answered by a device, where no entry counts it */
	double		small;
	bool		transient;		/* answered with transient rows; not reusable */
	bool		no_room;		/* not kept because the cache has no room for it */
	int			n_features;
	uint8	   *kinds;		/* [n_features] PosteriorColumnKind */
	PosteriorLabelList labels;	/* of its classes, or none */
} PosteriorContextHandle;

/* An empty handle, for the caller to fill; NULL without memory, so that a pin can be given up. */
PosteriorContextHandle *posterior_handle_make(PosteriorModel *model, int n_features,
											  const uint8 *kinds,
											  const PosteriorLabelList *labels);

/*
 * The encoding of an entry's first n rows. Takes over the caller's pin, also when it raises.
 */
PosteriorContextHandle *posterior_handle_of_entry(PosteriorModel *model, int n_features,
												  const uint8 *kinds,
												  const PosteriorLabelList *labels,
												  PosteriorCacheEntry *entry, int64 n);

/* Release; the pin of its entry goes with it. Raises nothing. */
void		posterior_handle_release(PosteriorContextHandle *e);

/*
 * Release a half-made handle and raise what the engine or the device reports; or return NULL, if it
 * is the device that failed and the CPU may answer.
 */
PosteriorContextHandle *posterior_handle_fail(PosteriorContextHandle *e, const TnpError *error);

/* tnp_grow of an encoding of the session's own. */
void		posterior_handle_grow(PosteriorContextHandle *e, const TnpRows *rows);

/*
 * Have the handle of an encoding of the session's own hold that of these rows, by tnp_revise. False
 * if it has to be made anew; then nothing has changed.
 */
bool		posterior_handle_revise(PosteriorContextHandle *e, const TnpRows *rows, int64 prefix);

#endif							/* POSTERIOR_HANDLE_H */
