/*
 * model_cache.h: the models of this database, as a session sees and keeps them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_MODEL_CACHE_H
#define POSTERIOR_MODEL_CACHE_H

#include "pg/shmem/segment.h"

#include "utils/uuid.h"

#include "lib/ilist.h"

#include "engine/tnp.h"

extern char *posterior_model_name;	/* posterior.model */
extern char *posterior_class_model_name;	/* posterior.class_model */

/* In a piece of shared memory that has a pin of weights. */
typedef struct PosteriorHolder
{
	dlist_node	node;
	uint32		part;			/* its number */
	void	   *piece;			/* of that part */
} PosteriorHolder;

/*
 * A parsed model in the arena, for all sessions of a database. Changes under posterior_lock. One of
 * several targets (tnp_model_several) has a pin of the weights that it borrows; it is freed first.
 */
typedef struct PosteriorWeights
{
	dlist_node	node;
	uint32		incarnation;			/* of the database */
	pg_uuid_t	version;
	int			kernels;
	int			targets;		/* per row; 0: as the file says */
	struct PosteriorWeights *base;	/* whose weights it borrows, or NULL */
	TnpModel   *model;
	int			pins;			/* sessions that use it, and holders */
	dlist_head	holders;		/* what it has encoded, and models that borrow its weights */
	PosteriorHolder holder;		/* of `base` */
	uint64		used;			/* when last, by the clock */
} PosteriorWeights;

/* Have a piece of a part hold weights, and let go of them. The lock is held exclusively. */
void		posterior_weights_hold(PosteriorWeights *weights, PosteriorHolder *holder,
								   const PosteriorSharedPart *part, void *piece);
void		posterior_weights_let_go(PosteriorWeights *weights, PosteriorHolder *holder);

extern PosteriorSharedPart posterior_weights_part;

/*
 * A model file, parsed, as this session uses it. Unless it is shared, all of it lies in `memory`,
 * or in that of the model whose weights it borrows, encodings included while they are computed.
 */
typedef struct PosteriorModel
{
	char		name[NAMEDATALEN];
	/* of the row in posterior.model_file: another file has another one */
	pg_uuid_t	version;
	int			kernels;		/* setting posterior.kernels when it was opened */
	int			targets;		/* per row, of one that borrows; 0: as the file says */
	TnpModel   *model;
	uint64		refused_by;		/* pid of the server whose device cannot compute it, or 0 */
	PosteriorWeights *weights;	/* pinned, or NULL */
	MemoryContext memory;		/* of a model of its own, unless it borrows from: */
	struct PosteriorModel *base;	/* acquired, or NULL */
	int			pins;
	struct PosteriorModel *next;
} PosteriorModel;

/*
 * What else than the model and its rows an encoding depends on: the kernels, and the views of a
 * model that averages over them (0: as many as posterior.estimators says).
 */
int32		posterior_model_arithmetic(const PosteriorModel *model, int views);

/*
 * The model of this name, as the active snapshot shows it. It stays until `owner` is reset or
 * deleted.
 */
PosteriorModel *posterior_model_pin(const char *name, MemoryContext owner);

/*
 * The same for rows of so many targets, 1 … TNP_MAX_TARGETS: where the model takes several, each by
 * itself, one of so many over the same weights. Other models are as their file says; whether they
 * take so many is for the caller to check.
 */
PosteriorModel *posterior_model_pin_targets(const char *name, int targets, MemoryContext owner);

/* The bytes of a model's file, allocated, if the active snapshot still shows its row, else NULL. */
bytea	   *posterior_model_file(const PosteriorModel *model);

/* At the end of the process: let go of shared models. */
void		posterior_models_exit(void);

/* Hold on to a model, or let it go, by hand. */
void		posterior_model_acquire(PosteriorModel *model);
void		posterior_model_release(PosteriorModel *model);

#endif							/* POSTERIOR_MODEL_CACHE_H */
