/*
 * config.h: the configuration of a model (docs/model-format.md section 2), parsed and checked.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CONFIG_H
#define TNP_CONFIG_H

#include "engine/file/family.h"
#include "engine/file/keys.h"
#include "engine/kernels/kernels.h"

#define TNP_MAX_HIDDEN 8		/* length of a list of hidden sizes */
#define TNP_MAX_CLASS_ROOM 64		/* largest room of a classifier */

typedef enum TnpScaling { TNP_SCALE_NONE, TNP_SCALE_FIXED, TNP_SCALE_PREFIX,
						 TNP_SCALE_CLASSES, TNP_SCALE_POWER } TnpScaling;
typedef enum TnpContextKind { TNP_FULL, TNP_CAUSAL, TNP_PREFIX_CAUSAL } TnpContextKind;
typedef enum TnpBias { TNP_BIAS_ALL, TNP_BIAS_OUTPUT, TNP_BIAS_NONE } TnpBias;
typedef enum TnpEmbedderKind { TNP_CONCAT, TNP_ADDITIVE, TNP_SEPARATE, TNP_PARTS,
							  TNP_SET } TnpEmbedderKind;
typedef enum TnpEncoderKind { TNP_ENCODE_LINEAR, TNP_ENCODE_MLP, TNP_ENCODE_SKIP_MLP,
							 TNP_ENCODE_ROWS, TNP_ENCODE_CLASSES, TNP_ENCODE_NONE,
							 TNP_ENCODE_IDENTITY } TnpEncoderKind;
typedef enum TnpHeadKind { TNP_HEAD_GAUSSIAN, TNP_HEAD_MIXTURE, TNP_HEAD_BARS,
						  TNP_HEAD_CLASSES, TNP_HEAD_QUANTILES, TNP_HEAD_JOINT } TnpHeadKind;
typedef enum TnpStdMap { TNP_STD_EXP, TNP_STD_BOUNDED, TNP_STD_SOFTPLUS,
						TNP_STD_SOFTPLUS_COMPLEMENT, TNP_STD_SQRT_SOFTPLUS } TnpStdMap;

typedef struct TnpHidden
{
	int			n;
	int			size[TNP_MAX_HIDDEN];
} TnpHidden;

/*
 * An encoder of a vector: section 4's ENC; the token fields belong to TNP_ENCODE_ROWS (0 layers and
 * width = no path B).
 */
typedef struct TnpEncoderConfig
{
	TnpEncoderKind kind;
	TnpHidden	hidden;			/* mlp, skip-mlp; rows: one entry, h */
	int			width;			/* linear and mlp of an embedder of parts: numbers that come out */
	int			token_width,
				token_layers,
				token_heads,
				token_feedforward,
				token_readouts;
	bool		ridge;			/* rows: regression features of regressions beside the cells */
	bool		logistic;		/* rows of a classifier: those of a logistic regression */
	bool		prune;			/* rows: columns that look like noise are left out */
	bool		prune_judged;	/* rows: ... unless rows left out are known better with all slots */
	int			prune_below;	/* rows: ... with fewer rows per column than this; 0: always */
	bool		pairs;			/* rows: ... but none that says something with another */
	bool		absent;			/* rows: regressions know the spread of what a missing cell says */
	int			split;			/* rows: columns that a feature of many labels becomes, at most */
	bool		codes_by_targets;	/* rows: categories in the order of their mean targets */
	bool		process;		/* rows: what a Gaussian process says beside the cells */
	int			directions;		/* rows: that the process has beside the columns, at most */
	bool		additive;		/* rows: the process may be a sum over columns in part */
	bool		nearest;		/* rows: the nearest rows may say more */
	bool		line;			/* rows: a line may take its place */
	bool		labels;			/* rows: numbers that name groups may be labels, too */
	int			donors;			/* rows: that a query borrows absent cells from, 0 for none */
	bool		shift;			/* rows: a missing cell may shift the target of its row */
	bool		orient;			/* rows: columns and targets are turned as the prefix says */
} TnpEncoderConfig;

/* A stage of the set encoder. */
typedef struct TnpStageConfig
{
	int			layers,
				heads,
				feedforward;
} TnpStageConfig;

/* The set encoder: its stages of one width over the cells of columns, and of rows. */
typedef struct TnpSetConfig
{
	int			width,
				inducing;		/* points that sum a column up */
	TnpStageConfig columns,
				rows;
	int			readouts;
	bool		take_all;		/* a token is all read-outs side by side, and not the first one */
	double		rotary;			/* base of the angles */
	bool		halves;			/* pairs are the halves of a head, and not neighbours */
} TnpSetConfig;

typedef struct TnpConfig TnpConfig;
struct TnpConfig
{
	char		description[256];	/* cut at 255 bytes, at a character boundary */
	const TnpFamily *family;		/* the architecture */
	/* what the family's own keys fill; see TNP_OWN */
	_Alignas(double) unsigned char own[TNP_OWN_CONFIG];

	int			n_features;		/* exact, or 0 */
	int			max_features;	/* with n_features = 0, else equal to n_features */
	TnpScaling	input_scaling;
	/* [n_features] when TNP_SCALE_FIXED, else NULL; freed by tnp_config_free */
	double	   *input_center,
			   *input_scale;
	double		input_clip;
	/* how many times as far as others a number is that counts as missing; 0: none does */
	double		far_cells;
	/* TNP_SCALE_CLASSES: targets are class indices, and so are E_y and the head */
	TnpScaling	target_scaling;
	/* how many times as far as others a target is that counts as nearer; 0: none does */
	double		far_targets;
	bool		orders_classes; /* classes are shown in the order of their counts */
	int			n_targets;		/* D, numbers that a row's target consists of */
	/* the weights are those of one target, and answer about each of the D by itself */
	bool		each_target;
	double		target_center[TNP_MAX_TARGETS],
				target_scale[TNP_MAX_TARGETS],
				target_clip;
	int			min_rows,
				row_limit;		/* 0 = any number */

	TnpContextKind context;
	int			buffer;			/* 0 = no limit */
	bool		strict;

	int			width,
				layers,
				heads,
				feedforward;
	TnpNormKind norm;
	bool		post_norm;
	bool		final_norm;
	double		norm_eps;
	TnpActivation activation;
	TnpBias		bias;
	int			sinks;
	bool		log_scale;

	TnpEmbedderKind embedder;
	TnpActivation embedder_activation;
	TnpHidden	concat_hidden;	/* of parts, too */
	bool		concat_flag;
	int			observed;		/* parts: numbers that tell rows from queries */
	bool		parts_norm;
	TnpEncoderConfig encode_x,
				encode_y;
	TnpSetConfig set;
	bool		roles;
	int			positions;

	TnpHeadKind head;
	TnpActivation head_activation;
	TnpHidden	head_hidden;
	/* components, buckets, classes, quantiles of each target; 1 for gaussian */
	int			head_outputs;
	/* classes: how much of the logits at most is what the logistic regression says */
	double		logistic_blend_weight;
	/* classes: how much of them at most is what boosted trees say; mixture: of an answer's mean */
	double		trees_blend_weight;
	/* classes: how much of them at most is what a process says */
	double		class_process;
	/* mixture: how far its mean moves to regressions where targets have few values */
	double		few_values;
	/* mixture: targets farther away, in deviations, are rare ones; 0: none are */
	double		rare;
	/* mixture: narrower components, in distances of levels, are on the levels of a target */
	double		levels;
	int			gate_hidden;	/* mixture: of the gate to a process's answer; 0: there is none */
	bool		gate_record;	/* it reads the process's record, too */
	bool		gate_behind;	/* and how many rows are behind the prefix */
	bool		process_chain;	/* that process learns from the rows of a chain */
	/* joint-gaussian: numbers per row of which products make the factor, blocks before them */
	int			head_rank,
				head_blocks;
	TnpHidden	head_projector;
	double		head_jitter;
	TnpStdMap	std_map;
	double		std_floor;
	bool		half_normal_tails;
};

#define TNP_MAX_GATE 256		/* hidden size of the gate to a process's answer */
#define TNP_GPU_GATED_HEAD 32	/* features of an attention head, of gated models on GPUs */
#define TNP_MOST_DONORS 64		/* of a query */
#define TNP_MOST_DIRECTIONS 8	/* of the process */
#define TNP_MOST_SLOTS 256		/* of inputs.max_features */
#define TNP_MOST_PARTS 16		/* of embedder.x.split */
#define TNP_MOST_COMPONENTS 1024 /* of a mixture */
#define TNP_MAX_FEATURES 1024
#define TNP_MAX_LAYERS 128
#define TNP_MAX_FEEDFORWARD 16384
#define TNP_MAX_SINKS 64

/* The keys of families that are stacks of attention blocks. */
#define TNP_STACK_SIZES \
	TNP_INTEGER("layers", TnpConfig, layers, 1, TNP_MAX_LAYERS), \
	TNP_INTEGER("heads", TnpConfig, heads, 1, TNP_MAX_WIDTH), \
	TNP_INTEGER("feedforward", TnpConfig, feedforward, 1, TNP_MAX_FEEDFORWARD)
#define TNP_STACK_KEYS \
	TNP_STACK_SIZES, \
	TNP_OBJECT("norm", tnp_norm_keys), \
	TNP_OBJECT("attention", tnp_attention_keys)

extern const TnpChoice tnp_activation_choices[];
extern const TnpChoice tnp_bias_choices[];
extern const TnpKey tnp_norm_keys[];
extern const TnpKey tnp_attention_keys[];

/* A rule about more than one key; of a and b, the detail shows those that have a name. */
typedef struct TnpRule
{
	bool		broken;
	const char *message;
	const char *name_a;
	int			a;
	const char *name_b;
	int			b;
} TnpRule;

/* The first broken rule is the error. */
TnpStatus	tnp_check_rules(size_t n, const TnpRule *rules, TnpError *error);

/* The rules that concern more than one key, in any family. */
TnpStatus	tnp_config_check(const TnpConfig *config, TnpError *error);

/* Rules of all stacks of attention blocks. */
TnpStatus	tnp_stack_check(const TnpConfig *config, TnpError *error);

/* Whether the embedder takes the scaled features as they are, and not encoded for themselves. */
static inline bool
tnp_embeds_features(const TnpConfig *c)
{
	return c->embedder == TNP_CONCAT || c->embedder == TNP_PARTS || c->embedder == TNP_SET;
}

/* Targets of a row that go through the network side by side, each as if it were alone. */
static inline int
tnp_target_planes(const TnpConfig *c)
{
	return c->each_target ? c->n_targets : 1;
}

/* Whether columns are scaled by what the prefix is like. */
static inline bool
tnp_scales_inputs(const TnpConfig *c)
{
	return c->input_scaling == TNP_SCALE_PREFIX || c->input_scaling == TNP_SCALE_POWER;
}

/* A list of hidden sizes, possibly empty, into a TnpHidden. */
TnpStatus	tnp_read_hidden(TnpReader *reader, const char *path, const json_t *value, void *field);

/* Rows of a family's table of keys: fields of its own structure. */
#define TNP_OWN_INTEGER(name, type, field, min, max) \
	{name, TNP_KEY_INTEGER, false, offsetof(TnpConfig, own) + offsetof(type, field), min, max, \
	 NULL, NULL, NULL}

#define TNP_OWN_INTEGER_OPTIONAL(name, type, field, min, max) \
	{name, TNP_KEY_INTEGER, true, offsetof(TnpConfig, own) + offsetof(type, field), min, max, \
	 NULL, NULL, NULL}
#define TNP_OWN_OTHER_OPTIONAL(name, type, field, read) \
	{name, TNP_KEY_OTHER, true, offsetof(TnpConfig, own) + offsetof(type, field), 0, 0, NULL, \
	 NULL, read}
#define TNP_OWN_CHOICE_OPTIONAL(name, type, field, choices) \
	{name, TNP_KEY_CHOICE, true, offsetof(TnpConfig, own) + offsetof(type, field), 0, 0, choices, \
	 NULL, NULL}
#define TNP_OWN_BOOLEAN_OPTIONAL(name, type, field) \
	{name, TNP_KEY_BOOLEAN, true, offsetof(TnpConfig, own) + offsetof(type, field), 0, 0, NULL, \
	 NULL, NULL}
#define TNP_OWN_NUMBER(name, type, field, min, max) \
	{name, TNP_KEY_NUMBER, false, offsetof(TnpConfig, own) + offsetof(type, field), min, max, \
	 NULL, NULL, NULL}
#define TNP_OWN_BOOLEAN(name, type, field) \
	{name, TNP_KEY_BOOLEAN, false, offsetof(TnpConfig, own) + offsetof(type, field), 0, 0, \
	 NULL, NULL, NULL}
#define TNP_OWN_OTHER(name, type, field, read) \
	{name, TNP_KEY_OTHER, false, offsetof(TnpConfig, own) + offsetof(type, field), 0, 0, \
	 NULL, NULL, read}

/* The family's own structure in a configuration. */
#define TNP_OWN(config, type) ((const type *) (const void *) (config)->own)

/*
 * Parse and check the JSON text [length] (not necessarily NUL-terminated). On failure nothing is
 * held.
 */
TnpStatus	tnp_config_parse(const TnpEnv *env, const char *json, size_t length, TnpConfig *config,
							 TnpError *error);
/* The same for a package's own configuration: the family that has such files reads it. */
TnpStatus	tnp_config_parse_published(const TnpEnv *env, const char *json, size_t length,
									   TnpConfig *config, TnpError *error);
void		tnp_config_free(const TnpEnv *env, TnpConfig *config);

#endif							/* TNP_CONFIG_H */
