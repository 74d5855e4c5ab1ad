/*
 * family.h: what distinguishes a family of models: the keys and tensors of its file, the state that
 * it keeps of a context, and how rows and queries are carried through its network.
 *
 * A family is files of src/engine/families and one line of the table there (families.c). Everything
 * else asks this table and knows no family by name. What is common to all: the container, scaling
 * and statistics, embedders, heads, chains, prefixes, the encoding's rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_FAMILY_H
#define TNP_FAMILY_H

#include "engine/tnp.h"

struct TnpBinder;
struct TnpBlockSizes;
struct TnpCacheShape;
struct TnpConfig;
struct TnpFeatureEmbedding;
struct TnpKey;
struct TnpScratch;
struct TnpStats;
struct TnpSumsOps;
struct TnpTeam;
struct TnpToken;
struct TnpTokenWork;
struct TnpWalk;

/* A token's role: the rows of the tensor "role". */
typedef enum TnpRole { TNP_ROLE_QUERY, TNP_ROLE_PREFIX, TNP_ROLE_LATER } TnpRole;

/* Bytes of a configuration that are a family's own; its keys fill a structure in them. */
#define TNP_OWN_CONFIG 512

/* Rows [at, at + n) of another encoding, which are rows [to, to + n) here. */
typedef struct TnpStretch
{
	const TnpEncoding *from;
	int64_t		at,
				to,
				n;
} TnpStretch;

typedef struct TnpFamily
{
	const char *name;			/* of the key "architecture" */
	const char *variant;		/* what tells it from the table's family of this name, or NULL */
	/* the variant that a configuration asks for; or NULL, if there is but one */
	const struct TnpFamily *(*refine) (const struct TnpConfig *config);

	/* ---- the file ---- */

	/*
	 * keys of a package's own configuration, all of them: such files say it instead of ours, and
	 * have that package's tensors. complete then sets what every family has; also of a bare family.
	 * NULL: no such files
	 */
	const struct TnpKey *published;
	void		(*complete) (struct TnpConfig *config);
	/*
	 * a family that answers for itself, and whose own files have neither width, activation,
	 * embedder nor head: complete sets what is asked of these
	 */
	bool		bare;
	/* keys of the outermost object beside those that every family has; ends with a NULL name */
	const struct TnpKey *keys;
	/* sets of 1 << TnpEmbedderKind; 0: concat and additive */
	unsigned	embedders;
	bool		joint_heads;	/* blocks of a joint head are the stack's, states its vectors */
	bool		several_targets;	/* rows may have more than one */
	bool		each_target;	/* a model of one target takes several, each by itself */
	/* what keys exclude or need each other in this family, after the common rules; or NULL */
	TnpStatus	(*check) (const struct TnpConfig *config, TnpError *error);
	/* bind the tensors between the embedder and the head; of a published file all of them */
	void		(*bind) (struct TnpBinder *binder);
	/* numbers that the head reads: the first ones of a query's state */
	int			(*head_width) (const struct TnpConfig *config);
	/* appended rows cost the new rows only, whatever their number */
	bool		(*appendable) (const struct TnpConfig *config);
	/*
	 * Whether what is kept of a row depends on that row alone, given the statistics. Without
	 * statistics of the prefix such a model with context "full" is read as prefix-causal, whose
	 * answers are equal and whose rows append. NULL: never.
	 */
	bool		(*lone_rows) (const struct TnpConfig *config);
	/* contexts can be sums over rows (families/sums_ops.h); or NULL */
	const struct TnpSumsOps *sums;
	/* GPUs have kernels for its layers (cuda/weights.c) */
	bool		on_gpu;
	/* columns of all kinds, with missing cells, whatever the embedder */
	bool		takes_any_cells;

	/* ---- what is kept of a context ---- */

	/*
	 * The cache of keys and values, or of what the family has instead. What the cache has of each
	 * slot whatever the layer (shape.extra bytes) is the end of the state of the token that is
	 * stored.
	 */
	void		(*cache_shape) (const TnpModel *model, struct TnpCacheShape *shape);
	/* slots in use when rows are encoded, of which `prefix` see each other */
	int64_t		(*slots) (const TnpModel *model, int64_t prefix, int64_t rows);
	/* bytes that one more row takes, 0 where the cache does not grow with rows */
	size_t		(*row_bytes) (const TnpModel *model);

	/*
	 * Make ready what the encoding keeps of exactly its rows; called when their number has changed.
	 * Or NULL.
	 */
	TnpStatus	(*settle) (TnpEncoding *encoding, TnpError *error);

	/* ---- the network ---- */

	/* floats of a token's state, and those that a block needs of scratch (scratch.h) */
	int			(*state_width) (const TnpModel *model);
	void		(*block_sizes) (const TnpModel *model, struct TnpBlockSizes *sizes);
	/*
	 * Floats behind what the embedder knows of a row's features, and the function that writes them
	 * for one row; or NULL.
	 */
	int			(*place_width) (const TnpModel *model);
	void		(*place) (const TnpModel *model, const struct TnpStats *stats, const double *x,
						  float *out);
	/* states [n, state width] of n rows, y [n, D], or queries; as tnp_embed */
	void		(*embed) (const TnpModel *model, int n, const float *const *row, const float *y,
						  TnpRole role, const int *position, float *scratch, float *states);
	/* floats of scratch per row that embed needs */
	int			(*embed_scratch) (const TnpModel *model);
	/*
	 * Make the halves (embed.h) of rows place[0 … n - 1] those of this encoding, so that what a
	 * row's features become there is computed once however often it is used; NULL: they are the
	 * same on every encoding.
	 */
	TnpStatus	(*settle_rows) (const TnpEncoding *encoding, struct TnpTeam *team,
								struct TnpFeatureEmbedding *half, const int64_t *place, int64_t n,
								TnpError *error);
	/* scratch of a family that makes tokens of cells itself, for tiles of `rows` rows; or NULL */
	TnpStatus	(*token_work) (const TnpModel *model, int rows, struct TnpTokenWork *work,
							   TnpError *error);
	/*
	 * Make ready what all rows of an encoding are read with, from the scaled rows of its prefix,
	 * before `encode` anew embeds them; steps: those of progress that this and the walk take
	 * beside the layers. Or NULL and 0.
	 */
	TnpStatus	(*begin) (TnpEncoding *encoding, struct TnpTeam *team, TnpError *error);
	int			steps;
	/*
	 * What row i of an encoding sees and where it is stored. NULL: rows of a context are encoded by
	 * `encode` only, never beside queries.
	 */
	void		(*row_token) (const TnpEncoding *encoding, int64_t i, struct TnpToken *token);
	/*
	 * Store rows [first, first + n) of the encoding, whose cache has room; anew: these are all, and
	 * nothing is stored yet.
	 */
	TnpStatus	(*encode) (TnpEncoding *encoding, int64_t first, int64_t n, bool anew,
						   TnpError *error);
	/*
	 * Store the rows of an encoding up to the end of the last stretch, taking over what others with
	 * the same statistics have of `stretches`, which are in the order of the rows here and, as far
	 * as they are of one encoding, there; `encode` stores the rest. NULL: never. Without statistics
	 * of the prefix such a model with context "prefix-causal" is read as causal.
	 */
	TnpStatus	(*take_over) (TnpEncoding *encoding, const TnpStretch *stretches, int64_t n,
							  TnpError *error);
	/*
	 * `encode` anew of all n rows, bitwise, with what another encoding of the same statistics keeps
	 * for that of its first rows; the first `common` are the same in both, and all is encoded where
	 * these are fewer than kept_rows. Or NULL.
	 */
	int64_t		(*kept_rows) (const TnpEncoding *encoding);
	TnpStatus	(*go_on) (TnpEncoding *encoding, int64_t n, const TnpEncoding *from,
						  int64_t common, TnpError *error);
	/* carry tokens through the network (walk.h) */
	TnpStatus	(*walk) (struct TnpWalk *walk, int64_t n, int64_t n_store, TnpError *error);
	/* few tokens may have their keys shared out to threads: the kernels attend as they are; or NULL
	 */
	bool		(*shares_keys) (const struct TnpConfig *config);
	/*
	 * Answer queries, params [n, size], from what `encode` made; NULL: queries are embedded, walk
	 * and go through the head, and all that is below is not NULL. A family that answers for itself
	 * has no chains: joint questions encode again after each row.
	 */
	TnpStatus	(*predict) (const TnpEncoding *encoding, const TnpRows *queries, double *params,
							TnpError *error);
	/*
	 * Joint questions to a family that answers for itself, in one piece: draws y [draws, n], and
	 * log densities steps [n] of rows place[0 … n - 1], each given those before it. NULL: the
	 * context is encoded again after each row.
	 */
	TnpStatus	(*sample) (const TnpEncoding *encoding, const TnpRows *queries, uint64_t seed,
						   uint64_t first_draw, int64_t draws, double *y, TnpError *error);
	TnpStatus	(*score) (const TnpEncoding *encoding, const TnpRows *rows, const int64_t *place,
						  double *steps, TnpError *error);
	/* about the multiplications of carrying `rows` rows that see `keys` keys each */
	double		(*cost) (const TnpModel *model, double rows, double keys);
	/* those of encoding `rows` rows; NULL: `cost`, every row seeing what the context's kind says */
	double		(*encoding_cost) (const TnpModel *model, int64_t rows);
} TnpFamily;

/* The table, which ends with NULL. */
extern const TnpFamily *const tnp_families[];

#endif							/* TNP_FAMILY_H */
