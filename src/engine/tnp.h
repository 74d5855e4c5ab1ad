/*
 * tnp.h: the whole public face of the engine.
 *
 * The engine is a plain C11 library: it reads a model file, keeps the encoding (keys and values) of
 * a context, and answers with predictive distributions, joint draws and joint log densities. It
 * knows nothing of PostgreSQL, has no global state, never exits and never longjmps: every function
 * that can fail returns a TnpStatus and fills a TnpError. The mathematics of every model is
 * docs/model-format.md.
 *
 * Words: model, context, row, query, encoding, prefix, suffix, chain, draw, order, provider,
 * distribution: see src/README.md. Shapes are in brackets, row-major: x [n, F].
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_H
#define TNP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From PostgreSQL 16 on, PGXS compiles modules with hidden visibility. */
#if defined(__GNUC__)
#define TNP_EXPORT __attribute__((visibility("default")))
#define TNP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TNP_EXPORT
#define TNP_PRINTF(fmt, args)
#endif

/* ---- status and errors ----------------------------------------------------------------------- */

typedef enum TnpStatus
{
	TNP_OK = 0,
	TNP_NO_MEMORY,				/* the allocator returned NULL, or a size would overflow */
	TNP_BAD_FILE,				/* not a well-formed safetensors file */
	TNP_BAD_CONFIG,				/* the configuration is malformed, unknown or contradicts itself */
	/* a tensor is missing, unexpected, of the wrong shape, or not finite */
	TNP_BAD_TENSOR,
	TNP_BAD_SHAPE,				/* the number of feature columns does not fit the model */
	/*
	 * a value the model cannot take: infinite, or missing or a category where the model has neither
	 */
	TNP_BAD_VALUE,
	TNP_TOO_FEW_ROWS,			/* the context has fewer rows than the model's min_rows */
	TNP_BAD_ARGUMENT,			/* an argument outside its stated range */
	TNP_INTERRUPTED,			/* the interrupt callback said stop */
	TNP_NOT_HERE				/* a device leaves this request to the session that asks */
} TnpStatus;

typedef struct TnpError
{
	TnpStatus	status;
	/* one sentence in lower case without full stop, never empty on failure */
	char		message[256];
	char		detail[256];	/* the numbers behind it, or empty */
} TnpError;

/* ---- environment ----------------------------------------------------------------------------- */

/*
 * What the caller lends to the engine. alloc returns memory aligned for a double, or NULL; free
 * accepts what alloc returned. interrupted is polled at least every few milliseconds of work; when
 * it returns true the call returns TNP_INTERRUPTED and has freed all it allocated. interrupted may
 * be NULL. No callback may longjmp.
 */
#define TNP_MAX_VIEWS 32

typedef struct TnpEnv
{
	void	   *(*alloc) (void *arg, size_t size);
	void		(*free) (void *arg, void *pointer);
	bool		(*interrupted) (void *arg);
	void	   *arg;
	const struct TnpKernels *kernels;	/* the provider's; NULL means the reference provider */

	/*
	 * Memory of models and of kept encodings (tnp_encoding_copy), where several processes may read
	 * it at one address; NULL: alloc and free. Everything in the environment of such a model must
	 * then mean the same in all of these processes.
	 */
	void	   *(*keep) (void *arg, size_t size);
	void		(*drop) (void *arg, void *pointer);

	/*
	 * How many threads, the caller's included, may work on one large call; NULL: 1; -n: n, however
	 * small the call, for tests. Helpers are started for the call and have ended when it returns;
	 * they have all signals blocked and use no callback, and answers do not depend on their number,
	 * bitwise.
	 */
	int			(*threads) (void *arg);

	/*
	 * How many views of its table a context that is encoded is to have, for models that average
	 * over several (TNP_MAX_VIEWS at most); NULL: 1.
	 */
	int			(*estimators) (void *arg);

	/*
	 * Called by the calling thread while a call encodes `total` rows: about `done` of them are
	 * encoded. `done` never falls and is `total` in the end. Layers are walked one after the other,
	 * so it is a share of the work. NULL: no reports.
	 */
	void		(*progress) (void *arg, int64_t done, int64_t total);

	/*
	 * Called by the calling thread while a call answers: so many rows more are answered. In the
	 * end they are the queries of a prediction or a joint distribution, the queries times the draws
	 * of a sample, the rows times the orders (1 at least) of a score. What a question encodes on
	 * its way is reported to `progress` as well. NULL: no reports.
	 */
	void		(*answered) (void *arg, int64_t rows);
} TnpEnv;

/* malloc, free, no interrupts, reference kernels. */
extern const TnpEnv tnp_default_env;

/* ---- rows ------------------------------------------------------------------------------------ */

typedef enum TnpColumnKind
{
	TNP_NUMERIC = 0,
	TNP_CATEGORICAL				/* the cell is an opaque identity: a whole number in [0, 2^53) */
} TnpColumnKind;

/*
 * Rows of a table. A missing feature is NaN. Infinite values are refused; a NaN target is refused
 * where y is read.
 */
typedef struct TnpRows
{
	int64_t		n;				/* number of rows */
	int			n_features;		/* F, number of feature columns */
	const TnpColumnKind *kinds; /* [F], or NULL: all numeric */
	const double *x;			/* [n, F] */
	/* [n, n_targets], or NULL for queries; a classifier's are class indices */
	const double *y;
	/*
	 * K: the classes of a context are 0 … K - 1; 0: all that the model has room for. Regression:
	 * ignored
	 */
	int			n_classes;
	/* rows of the same table before these, which errors count as well; or TNP_UNNUMBERED */
	int64_t		before;
	/* D, numbers that a row's target consists of; 0: 1. Queries: ignored */
	int			n_targets;
} TnpRows;

#define TNP_MAX_TARGETS 64		/* of a row */
#define TNP_UNNUMBERED (-1)		/* rows of no table that a user knows: errors name none */

/* D of rows. */
static inline int
tnp_rows_targets(const TnpRows *rows)
{
	return rows->n_targets > 0 ? rows->n_targets : 1;
}

/* Rows [first, first + n) of rows; errors count them as before. */
static inline TnpRows
tnp_rows_part(const TnpRows *rows, int64_t first, int64_t n)
{
	TnpRows		part = *rows;

	part.n = n;
	part.x += first * rows->n_features;
	if (rows->y != NULL)
		part.y += first * tnp_rows_targets(rows);
	if (rows->before != TNP_UNNUMBERED)
		part.before += first;
	return part;
}

/* ---- model ----------------------------------------------------------------------------------- */

#define TNP_GPU_HEAD 128		/* features of an attention head that GPUs have kernels for */

typedef struct TnpModel TnpModel;

/* What a caller may want to know about a model. Strings live as long as the model. */
typedef struct TnpModelInfo
{
	const char *architecture;	/* a family of engine/families/families.h */
	const char *context;		/* "full", "causal", "prefix-causal" */
	const char *description;
	const char *head; /* "gaussian", "mixture", "bars", "classes", "quantiles", "joint-gaussian" */
	int			n_classes;		/* classes that a classifier has room for, 0: a regression model */
	int			n_targets;		/* D, numbers that a row's target consists of */
	bool		each_target;	/* rows may have several, each by itself (tnp_model_several) */
	int			n_features;		/* exact number of feature columns, or 0 when any number is taken */
	int			max_features;	/* columns used at most when any number is taken, else n_features */
	int			min_rows;		/* context rows needed before the first prediction */
	int			buffer;			/* K of the chain, 0 = no limit */
	bool		appendable;		/* appended rows cost the new rows only (causal, prefix-causal) */
	bool		mergeable;		/* it has the sums of tnp_sums_merge */
	bool		revisable;		/* rows deleted or changed cost themselves only (tnp_revise) */
	/* an encoding of the first rows spares one of more rows a part of the work (tnp_revise) */
	bool		goes_on;
	bool		takes_missing;	/* NaN features are accepted */
	bool		takes_categories;
	bool		has_donors;		/* asks about rows that lack cells with those of other rows */
	/* a row of a chain tells more of the next than one that was appended (TNP_AS_APPENDED) */
	bool		learns_in_chains;
	bool		has_views;		/* averages over the environment's number of views of a table */
	bool		scales_by_prefix;	/* statistics come from the context's prefix */
	/* GPUs have kernels for it, unless one lacks the memory; else it is computed by CPUs */
	bool		on_gpu;
	int64_t		n_parameters;
	size_t		encoding_bytes_per_row; /* beside the row's own cells; 0: any number of rows */
	/* advice: refuse contexts of more rows; 0 = any number. The engine takes them */
	int64_t		row_limit;
} TnpModelInfo;

/*
 * Read a model file of length bytes from memory; bytes are untrusted and are not needed after the
 * call. The environment is copied and used for everything made from this model. Frees everything on
 * failure.
 */
TNP_EXPORT TnpStatus tnp_model_open(const TnpEnv *env, const void *bytes, size_t length,
									TnpModel **model, TnpError *error);
TNP_EXPORT void tnp_model_close(TnpModel *model);

/*
 * A model of rows with 1 … TNP_MAX_TARGETS targets, which answers about each as `model` does about
 * one, bitwise: of what does not depend on targets, such as weights of attention that come from
 * features, it computes and keeps one. Its weights and memory are those of `model`, which is closed
 * after it. TNP_BAD_ARGUMENT where info->each_target is false.
 */
TNP_EXPORT TnpStatus tnp_model_several(const TnpModel *model, int targets, TnpModel **several,
									   TnpError *error);
TNP_EXPORT const TnpModelInfo *tnp_model_info(const TnpModel *model);

/* ---- encoding -------------------------------------------------------------------------------- */

typedef struct TnpEncoding TnpEncoding;

/*
 * The canonical end of the prefix of n rows that arrive one after the other (model-format.md
 * section 10).
 */
TNP_EXPORT int64_t tnp_canonical_prefix(const TnpModel *model, int64_t n);

/* The prefix of n rows that are given as a whole: n, or 0 for causal models. */
TNP_EXPORT int64_t tnp_whole_prefix(const TnpModel *model, int64_t n);

/* About the multiplications that encoding n rows takes. */
TNP_EXPORT double tnp_encoding_cost(const TnpModel *model, int64_t n);

/*
 * How far the rows from `first` on have moved away from those before: the largest, over the numeric
 * columns and the targets that are numbers, of the difference of the means in standard deviations
 * of the rows before and of the logarithm of the ratio of the standard deviations, each less three
 * standard errors. A column that was constant and is no more, or the other way round, has drifted
 * infinitely. 0 while either side has fewer than TNP_DRIFT_ROWS numbers. What is far from all
 * others among the rows before counts as it does for the model, or, for NULL, as it is. NAN when
 * memory ran out.
 */
#define TNP_DRIFT_ROWS 32
TNP_EXPORT double tnp_drift(const TnpModel *model, const TnpRows *rows, int64_t first);

/*
 * build: statistics from the first `prefix` rows, encoding of all rows (rows beyond the prefix
 * causally). rows->n may be 0 if min_rows is 0. For `full` models rows after the prefix become
 * chain rows: there may be at most buffer - 1 of them.
 */
TNP_EXPORT TnpStatus tnp_build(const TnpModel *model, const TnpRows *rows, int64_t prefix,
							   TnpEncoding **encoding, TnpError *error);

/*
 * build with so many views of the table (1 … TNP_MAX_VIEWS), for models that average over several;
 * 0: as the environment says. Others ignore it. What is built of an encoding (grow, joint
 * questions) has the views that it has.
 */
TNP_EXPORT TnpStatus tnp_build_views(const TnpModel *model, const TnpRows *rows, int64_t prefix,
									 int views, TnpEncoding **encoding, TnpError *error);

/*
 * append: rows after the last one, with the statistics and the prefix as they are. Costs the new
 * rows only. For causal and prefix-causal models any number; for `full` models chain rows while the
 * buffer has room, else TNP_BAD_ARGUMENT. On failure the encoding is unchanged.
 */
TNP_EXPORT TnpStatus tnp_append(TnpEncoding *encoding, const TnpRows *rows, TnpError *error);

/*
 * forget: the rows from n on, appended ones all of them; n is not more than there are. Sums of rows
 * are then of others, until the next append or in a view (tnp_encoding_first): asked before, they
 * say TNP_BAD_ARGUMENT.
 */
TNP_EXPORT void tnp_encoding_forget(TnpEncoding *encoding, int64_t n);

/*
 * grow: append under the canonical rule: append while tnp_canonical_prefix stays, build anew (from
 * the rows the encoding keeps) where it moves. The result equals tnp_build(all rows,
 * tnp_canonical_prefix(all rows)) bitwise. On failure the encoding is unchanged.
 */
TNP_EXPORT TnpStatus tnp_grow(TnpEncoding *encoding, const TnpRows *rows, TnpError *error);

/*
 * revise: an encoding of these rows under this prefix, equal bitwise to what tnp_build of them
 * gives, that takes over what another has of them, in any place, so that rows which only one of
 * both has are encoded and no others; where the model only goes on, what the other keeps of its
 * first rows, if these begin with them. *revised is NULL, and the status TNP_OK, where the model
 * does neither, where the statistics are of other rows (those of tnp_encoding_base_rows must be the
 * same, unless nothing is scaled by them), or where so much differs that it is not worth while:
 * then build.
 */
TNP_EXPORT TnpStatus tnp_revise(const TnpEncoding *from, const TnpRows *rows, int64_t prefix,
								TnpEncoding **revised, TnpError *error);

/*
 * copy: an encoding of the first n rows, equal bitwise to what building them under the same prefix
 * gives, with room for `capacity` rows, n being at least tnp_encoding_base_rows. A kept copy lies
 * in the environment's lasting memory; appending to it fails with TNP_BAD_ARGUMENT where the room
 * ends.
 */
TNP_EXPORT TnpStatus tnp_encoding_copy(const TnpEncoding *encoding, int64_t n, int64_t capacity,
									   bool keep, TnpEncoding **copy, TnpError *error);

/*
 * first: a read-only encoding of the first n rows (at least tnp_encoding_base_rows) that shares the
 * memory of another, which must outlive it. Rows may be appended to the other one meanwhile, by
 * another process as well.
 */
TNP_EXPORT TnpStatus tnp_encoding_first(const TnpEncoding *encoding, int64_t n, TnpEncoding **view,
										TnpError *error);

/* Rows that everything after them depends on: the prefix and those of the statistics. */
TNP_EXPORT int64_t tnp_encoding_base_rows(const TnpEncoding *encoding);

/* Rows there is room for. */
TNP_EXPORT int64_t tnp_encoding_capacity(const TnpEncoding *encoding);

/* The rows as they were given; they live as long as the encoding. */
TNP_EXPORT TnpRows tnp_encoding_view(const TnpEncoding *encoding);

TNP_EXPORT void tnp_encoding_free(TnpEncoding *encoding);
TNP_EXPORT int64_t tnp_encoding_rows(const TnpEncoding *encoding);
TNP_EXPORT int64_t tnp_encoding_prefix(const TnpEncoding *encoding);
TNP_EXPORT int tnp_encoding_views(const TnpEncoding *encoding);
TNP_EXPORT size_t tnp_encoding_bytes(const TnpEncoding *encoding);

/* ---- nearest rows ---------------------------------------------------------------------------- */

/*
 * The rows of a table that are nearest to a question, found by a plain scan. Questions of one block
 * have the same k rows, those nearest to the block's anchor, which is a row of the table; a
 * question's block is that of the anchor nearest to it. Which rows these are follows from the table
 * and the question alone. Distances are those of features/nearest.c.
 */
typedef struct TnpNearest TnpNearest;

/*
 * Of rows with targets; k of them, 1 at least, or all where they are fewer. Reads each row a few
 * times per column.
 */
TNP_EXPORT TnpStatus tnp_nearest_make(const TnpModel *model, const TnpRows *rows, int64_t k,
									  TnpNearest **nearest, TnpError *error);
TNP_EXPORT void tnp_nearest_free(TnpNearest *nearest);

/* The number of rows of a block: k, or all. */
TNP_EXPORT int64_t tnp_nearest_size(const TnpNearest *nearest);

/* The block of a question x [F]. */
TNP_EXPORT TnpStatus tnp_nearest_block(const TnpNearest *nearest, const double *x, int64_t *block,
									   TnpError *error);

/* The numbers of its rows [tnp_nearest_size], ascending. */
TNP_EXPORT TnpStatus tnp_nearest_rows(const TnpNearest *nearest, int64_t block, int64_t *rows,
									  TnpError *error);

/* The target that a row of a block is encoded with: y, or what a far one counts as (far.c). */
TNP_EXPORT double tnp_nearest_target(const TnpNearest *nearest, double y);

/* ---- sums ------------------------------------------------------------------------------------ */

/*
 * Contexts of some models are sums over rows (docs/sums.md): of constant size, exact, and the same
 * whatever the order of rows. A basis is learnt of a sample of rows; sums under one basis can be
 * merged. Bases and sums as words mean the same on every machine. TnpSums is memory of the caller's
 * without pointers: a copy of its bytes is a copy.
 */
typedef struct TnpSums TnpSums;

/*
 * Whether a model's contexts can be sums; the functions below are for such models. And whether they
 * are rather sums than rows where both will do.
 */
TNP_EXPORT bool tnp_keeps_sums(const TnpModel *model);
TNP_EXPORT bool tnp_prefers_sums(const TnpModel *model);

/* Words of a basis of so many columns. */
TNP_EXPORT size_t tnp_basis_words(const TnpModel *model, int n_features);

/* basis [tnp_basis_words] of a sample of rows, with targets, in their order. */
TNP_EXPORT TnpStatus tnp_basis_make(const TnpModel *model, const TnpRows *rows, int64_t *basis,
									TnpError *error);

/* Refuse words [words] that are no basis of this model's for these columns. Bytes are untrusted. */
TNP_EXPORT TnpStatus tnp_basis_check(const TnpModel *model, int n_features,
									 const TnpColumnKind *kinds, size_t words,
									 const int64_t *basis, TnpError *error);

/* Under a basis that was checked: bytes of sums, words of them, sums of no rows. */
TNP_EXPORT size_t tnp_sums_bytes(const TnpModel *model, const int64_t *basis);
TNP_EXPORT size_t tnp_sums_words(const TnpModel *model, const int64_t *basis);
TNP_EXPORT void tnp_sums_begin(const TnpModel *model, const int64_t *basis, TnpSums *sums);
TNP_EXPORT int64_t tnp_sums_rows(const TnpSums *sums);

/*
 * Add rows, which are as the model takes them, or with sign -1 take them away; rows that are not in
 * the sums must not be taken away, which only shows where there are fewer. After a failure sums of
 * more than one row are undefined, those before a single row are as they were.
 */
TNP_EXPORT TnpStatus tnp_sums_add(const TnpModel *model, TnpSums *sums, const TnpRows *rows,
								  int sign, TnpError *error);

/* The same with the rows of other sums, under the same basis. */
TNP_EXPORT TnpStatus tnp_sums_merge(const TnpModel *model, TnpSums *into, TnpSums *from, int sign,
									TnpError *error);

/* words [tnp_sums_words] of sums; and back, into begun sums, words being untrusted. */
TNP_EXPORT void tnp_sums_write(const TnpModel *model, TnpSums *sums, int64_t *words);
TNP_EXPORT TnpStatus tnp_sums_read(const TnpModel *model, TnpSums *sums, const int64_t *words,
								   TnpError *error);

/*
 * An encoding of the rows of sums, which it copies: it answers as one that was built of these rows
 * under this basis. It has no rows of its own: nothing can be appended, copied or viewed.
 */
TNP_EXPORT TnpStatus tnp_sums_encode(const TnpModel *model, const TnpColumnKind *kinds,
									 TnpSums *sums, TnpEncoding **encoding, TnpError *error);

/* Whether a row with these cells [columns] and targets [n_targets] can be added to sums. */
TNP_EXPORT bool tnp_sums_takes(const TnpModel *model, TnpSums *sums, const double *x,
							   const double *y);

/*
 * What an encoding of sums has found by the evidence, as words [tnp_fit_words] under its basis: the
 * precisions and the noise, and what later rows are weighed against. An encoding that is given a
 * fit finds nothing by itself: it answers as one of the fit's rows to which rows were added, or
 * taken away, until they are those of the sums. Without one (NULL) it is tnp_sums_encode. Words are
 * untrusted. keep: in the environment's lasting memory.
 */
TNP_EXPORT size_t tnp_fit_words(const TnpModel *model, const int64_t *basis);
TNP_EXPORT void tnp_fit_write(const TnpEncoding *encoding, int64_t *words);
TNP_EXPORT size_t tnp_sums_encoding_bytes(const TnpModel *model, const TnpSums *sums);
TNP_EXPORT TnpStatus tnp_sums_encode_fitted(const TnpModel *model, const TnpColumnKind *kinds,
											TnpSums *sums, size_t words, const int64_t *fit,
											bool keep, TnpEncoding **encoding, TnpError *error);

/*
 * Of an encoding of sums: the number of rows that its fit is of, and how far all its rows have
 * moved from those. The largest of three things: of the target and of a feature of each numeric
 * column, which grows with its cells, what tnp_drift compares; of each column the change of the
 * share of missing cells; of each that is no numeric one the change of the share of categories that
 * the basis does not know. Shares, too, less three standard errors. It takes time by the columns.
 */
TNP_EXPORT int64_t tnp_sums_fit_rows(const TnpEncoding *encoding);
TNP_EXPORT double tnp_sums_drift(const TnpEncoding *encoding);

/*
 * The log density of the targets of an encoding's sums, the rows that it was made of, whose
 * precisions it has found: weights and noise integrated out, settings averaged. Only of models that
 * have it in closed form.
 */
TNP_EXPORT bool tnp_sums_have_evidence(const TnpModel *model);
TNP_EXPORT double tnp_sums_log_evidence(const TnpEncoding *encoding);

/* ---- distributions --------------------------------------------------------------------------- */

typedef enum TnpDistributionKind
{
	TNP_GAUSSIAN = 1,			/* parameters: mean, sd */
	TNP_MIXTURE = 2,			/* n weights (sum 1), n means, n sds */
	TNP_BARS = 3,				/* n masses (sum 1), n + 1 borders; bounded */
	TNP_BARS_HALF_NORMAL = 4,	/* the same, with half-normal first and last bucket; n >= 2 */
	/* n probabilities (sum 1) of the values 0 … n - 1; labels are kept by the caller */
	TNP_CLASSES = 5,
	/* n increasing quantiles at k / (n + 1), scales of the lower and the upper exponential tail */
	TNP_QUANTILES = 6
} TnpDistributionKind;

/*
 * A distribution over the target in original units. Of a classifier: all classes it has room for,
 * those from K on with probability 0. params [tnp_distribution_size(kind, n)].
 */
typedef struct TnpDistribution
{
	TnpDistributionKind kind;
	int			n;				/* components, buckets, classes, quantiles; 1 for Gaussian */
	const double *params;
} TnpDistribution;

/* Number of doubles in params. */
TNP_EXPORT int tnp_distribution_size(TnpDistributionKind kind, int n);

/* Most components, buckets, classes or quantiles of a distribution; 0 for an unknown kind. */
TNP_EXPORT int tnp_distribution_most(TnpDistributionKind kind);

/*
 * Check untrusted parameters: finite, positive sds, weights that sum to 1 within 1e-6, increasing
 * borders and quantiles.
 */
TNP_EXPORT TnpStatus tnp_distribution_check(const TnpDistribution *d, TnpError *error);

/*
 * Moments and shape. All by closed form where one exists. For TNP_CLASSES the density is the
 * probability of a class and the mode the most probable one; mean, variance, cdf, quantile and crps
 * are not defined (NaN).
 */
TNP_EXPORT double tnp_mean(const TnpDistribution *d);
TNP_EXPORT double tnp_variance(const TnpDistribution *d);
TNP_EXPORT double tnp_mode(const TnpDistribution *d);
/* differential, nats; mixtures by quadrature to 1e-8 */
TNP_EXPORT double tnp_entropy(const TnpDistribution *d);
TNP_EXPORT double tnp_pdf(const TnpDistribution *d, double y);
TNP_EXPORT double tnp_log_pdf(const TnpDistribution *d, double y);
TNP_EXPORT double tnp_cdf(const TnpDistribution *d, double y);
/* p in [0,1]; the support's ends at 0 and 1 */
TNP_EXPORT double tnp_quantile(const TnpDistribution *d, double p);
TNP_EXPORT double tnp_crps(const TnpDistribution *d, double y);

/* E[max(Y - y, 0)]; y may be infinite. NaN for TNP_CLASSES. */
TNP_EXPORT double tnp_expected_excess(const TnpDistribution *d, double y);

/*
 * The distribution of scale * Y + shift, of the same kind and size; scale is not 0. params
 * [tnp_distribution_size(kind, n)] are not checked: what overflows is for tnp_distribution_check.
 * NaN for TNP_CLASSES.
 */
TNP_EXPORT void tnp_affine(const TnpDistribution *d, double scale, double shift, double *params);

/*
 * A mixture that is `factor` times as wide, with its mean where it was and its peaks about there:
 * standard deviations are multiplied by factor, and so are the distances from the median, on the
 * side where they have less weight. Those of the other side are multiplied by what keeps the mean.
 * params [3 n] are not checked, as above.
 */
TNP_EXPORT void tnp_widen(const TnpDistribution *mixture, double factor, double *params);

/* One draw from the four words of a counter-based generator (model-format.md section 11). */
TNP_EXPORT double tnp_draw(const TnpDistribution *d, uint64_t seed, uint64_t draw, uint32_t step);

/* ---- the requests ---------------------------------------------------------------------------- */

/*
 * The kind and number of components of every answer of this model, so that callers can size the
 * parameters. Of several targets each has an answer of this shape.
 */
TNP_EXPORT void tnp_answer_shape(const TnpModel *model, TnpDistributionKind *kind, int *n);

/* Numbers of the answers to one query: n_targets times tnp_distribution_size(answer shape). */
TNP_EXPORT int tnp_answer_size(const TnpModel *model);

/*
 * predict: the marginal predictive distribution of every target of every query. params [queries->n,
 * n_targets, tnp_distribution_size(answer shape)]. An answer does not depend on the other queries
 * (bitwise).
 */
TNP_EXPORT TnpStatus tnp_predict(const TnpEncoding *encoding, const TnpRows *queries,
								 double *params, TnpError *error);

/*
 * append_predict: append, then predict with the new rows there, bitwise; but few rows and few
 * queries walk through the layers together, so that what they read is read once. On failure the
 * encoding is unchanged.
 */
TNP_EXPORT TnpStatus tnp_append_predict(TnpEncoding *encoding, const TnpRows *rows,
										const TnpRows *queries, double *params, TnpError *error);

/*
 * sample: joint draws of all queries, in their order. y [draws, queries->n, n_targets]; draws are
 * numbered first_draw, first_draw+1, … and each depends on (seed, number) only (bitwise). Given the
 * rows before it, the targets of a row are independent.
 */
TNP_EXPORT TnpStatus tnp_sample(const TnpEncoding *encoding, const TnpRows *queries, uint64_t seed,
								uint64_t first_draw, int64_t draws,
								double *y, TnpError *error);

/*
 * score: the joint log density of rows (y given) over all their targets, in the given order when
 * orders = 0, else the log of the mean density over `orders` random orders. per_row, if not NULL
 * and there is one order, receives the conditional log densities [n]. TNP_AS_APPENDED is the given
 * order, each row being answered as after an append of those before it: not otherwise than with 0
 * but where chains know more than the context (head.process_chain).
 */
#define TNP_AS_APPENDED (-1)
TNP_EXPORT TnpStatus tnp_score(const TnpEncoding *encoding, const TnpRows *rows, int64_t orders,
							   uint64_t seed,
							   double *log_density, double *per_row, TnpError *error);

/*
 * joint: the joint Gaussian of all queries in closed form, for models whose head is
 * "joint-gaussian"; TNP_BAD_ARGUMENT for others, and for more than TNP_MAX_JOINT targets. mean
 * [n, D], covariance [n, D, n, D]; both depend on the order of the queries as tnp_score does.
 */
#define TNP_MAX_JOINT 4096
TNP_EXPORT TnpStatus tnp_joint(const TnpEncoding *encoding, const TnpRows *queries, double *mean,
							   double *covariance, TnpError *error);

/*
 * evidence: the log marginal likelihood of rows in their order, by the chain rule under the
 * canonical prefix, conditional on the first min_rows rows (nothing if min_rows is 0). *conditioned
 * receives min_rows. per_row, if not NULL, receives [n] conditionals (NaN for the conditioned
 * rows).
 */
TNP_EXPORT TnpStatus tnp_evidence(const TnpModel *model, const TnpRows *rows, double *log_evidence,
								  int64_t *conditioned,
								  double *per_row, TnpError *error);

/*
 * The same in stages, for callers that encode elsewhere: check rows and set *given, on which the
 * evidence is conditional; from then on, with n rows encoded under the canonical prefix of n, the
 * score of rows [n, tnp_evidence_end) in their order is the next term of the sum, and that end the
 * next n, until it is `rows`.
 */
TNP_EXPORT TnpStatus tnp_evidence_begin(const TnpModel *model, const TnpRows *rows, int64_t *given,
										TnpError *error);
TNP_EXPORT int64_t tnp_evidence_end(const TnpModel *model, int64_t n, int64_t rows);

/* ---- providers ------------------------------------------------------------------------------- */

/* The kernels of a CPU-class provider: src/engine/kernels/kernels.h. */
typedef struct TnpKernels TnpKernels;

/* straightforward C, float64 accumulation: the oracle */
TNP_EXPORT extern const TnpKernels tnp_reference_kernels;

#endif							/* TNP_H */
