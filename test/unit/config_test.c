/*
 * config_test.c: the configuration reader: defaults, every key's range, every rule, and what the
 * messages say.
 *
 * A test configuration is a base text in which one piece is replaced by another; a replacement that
 * does not find its piece is itself a failure, so that no row of a table can pass by testing
 * nothing.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "engine/file/config.h"
#include "tap.h"

/* Packed, full, buffer, additive with positions, mixture. */
static const char additive[] =
"{\"format\": 1, \"architecture\": \"packed\","
" \"inputs\": {\"features\": 2, \"scaling\": \"none\"}, \"target\": {\"scaling\": \"none\"},"
" \"min_rows\": 1, \"context\": \"full\", \"chain\": {\"buffer\": 4},"
" \"width\": 16, \"layers\": 2, \"heads\": 4, \"feedforward\": 32,"
" \"norm\": {\"kind\": \"layer\", \"placement\": \"pre\", \"eps\": 1e-5, \"final\": true}, "
"\"activation\": \"gelu\","
" \"attention\": {\"bias\": \"all\"},"
" \"embedder\": {\"kind\": \"additive\", \"x\": {\"kind\": \"skip-mlp\", \"hidden\": [8, 9]}, "
"\"y\": {\"kind\": \"linear\"},"
"  \"roles\": true, \"positions\": 3},"
" \"head\": {\"kind\": \"mixture\", \"hidden\": [16], \"std\": \"softplus\", \"components\": 5}}";

/* Two-stream, causal, concat, Gaussian. */
static const char two_stream[] =
"{\"format\": 1, \"architecture\": \"two-stream\","
" \"inputs\": {\"features\": 2, \"scaling\": \"none\"}, \"target\": {\"scaling\": \"none\"},"
" \"min_rows\": 1, \"context\": \"causal\", \"chain\": {\"buffer\": null},"
" \"width\": 16, \"layers\": 2, \"heads\": 4, \"feedforward\": 32,"
" \"norm\": {\"kind\": \"rms\", \"placement\": \"post\", \"eps\": 1e-6, \"final\": false}, "
"\"activation\": \"relu\","
" \"attention\": {\"bias\": \"output\"},"
" \"embedder\": {\"kind\": \"concat\", \"hidden\": [], \"flag\": true, \"activation\": "
"\"gelu-tanh\"},"
" \"head\": {\"kind\": \"gaussian\", \"hidden\": [], \"std\": \"sqrt-softplus\", \"floor\": 0.25}}";

/* The row tokeniser, prefix-causal, sinks, bars. */
static const char tabular[] =
"{\"format\": 1, \"description\": \"a table reader\", \"architecture\": \"packed\","
" \"inputs\": {\"max_features\": 6, \"scaling\": \"prefix\", \"clip\": 3}, \"target\": "
"{\"scaling\": \"prefix\", \"clip\": 4.5},"
" \"min_rows\": 2, \"context\": \"prefix-causal\", \"chain\": {\"buffer\": null, \"mask\": "
"\"inclusive\"},"
" \"width\": 16, \"layers\": 2, \"heads\": 4, \"feedforward\": 32,"
" \"norm\": {\"kind\": \"rms\", \"placement\": \"pre\", \"eps\": 1e-6, \"final\": true}, "
"\"activation\": \"gelu\","
" \"attention\": {\"bias\": \"none\", \"sinks\": 2, \"log_scale\": true},"
" \"embedder\": {\"kind\": \"additive\","
"  \"x\": {\"kind\": \"rows\", \"hidden\": 24, \"tokens\": {\"width\": 8, \"layers\": 1, "
"\"heads\": 2, \"feedforward\": 16, \"readouts\": 2}, \"ridge\": true},"
"  \"y\": {\"kind\": \"mlp\", \"hidden\": [12]}, \"roles\": false, \"positions\": 0},"
" \"head\": {\"kind\": \"bars\", \"hidden\": [16], \"activation\": \"relu\", \"buckets\": 7, "
"\"tails\": \"half-normal\"}}";

/* One that asks about rows that lack cells with those of others. */
static const char lending[] =
"{\"format\": 1, \"architecture\": \"packed\","
" \"inputs\": {\"max_features\": 6, \"scaling\": \"prefix\", \"clip\": 3}, \"target\": "
"{\"scaling\": \"prefix\"},"
" \"min_rows\": 2, \"context\": \"prefix-causal\", \"chain\": {\"buffer\": null},"
" \"width\": 16, \"layers\": 2, \"heads\": 4, \"feedforward\": 32,"
" \"norm\": {\"kind\": \"rms\", \"placement\": \"pre\", \"eps\": 1e-6, \"final\": true}, "
"\"activation\": \"gelu\","
" \"attention\": {\"bias\": \"none\", \"sinks\": 2, \"log_scale\": true},"
" \"embedder\": {\"kind\": \"additive\","
"  \"x\": {\"kind\": \"rows\", \"hidden\": 24, \"tokens\": null, \"donors\": 15, "
"\"orient\": true},"
"  \"y\": {\"kind\": \"mlp\", \"hidden\": [12]}, \"roles\": false, \"positions\": 0},"
" \"head\": {\"kind\": \"mixture\", \"hidden\": [], \"components\": 5, \"std\": \"exp\"}}";

/* A classifier. */
static const char classes[] =
"{\"format\": 1, \"architecture\": \"packed\","
" \"inputs\": {\"max_features\": 6, \"scaling\": \"prefix\"}, \"target\": {\"scaling\": "
"\"classes\"},"
" \"min_rows\": 2, \"context\": \"prefix-causal\", \"chain\": {\"buffer\": null},"
" \"width\": 16, \"layers\": 2, \"heads\": 4, \"feedforward\": 32,"
" \"norm\": {\"kind\": \"rms\", \"placement\": \"pre\", \"eps\": 1e-6, \"final\": true}, "
"\"activation\": \"gelu\","
" \"attention\": {\"bias\": \"none\", \"sinks\": 2},"
" \"embedder\": {\"kind\": \"additive\", \"x\": {\"kind\": \"rows\", \"hidden\": 24, \"tokens\": "
"null},"
"  \"y\": {\"kind\": \"classes\"}, \"roles\": false, \"positions\": 0},"
" \"head\": {\"kind\": \"classes\", \"hidden\": [16], \"classes\": 10}}";

/* A Gaussian process beside the cells, and no regression. */
static const char process[] =
"{\"format\": 1, \"architecture\": \"packed\","
" \"inputs\": {\"max_features\": 6, \"scaling\": \"prefix\", \"clip\": 3}, \"target\": "
"{\"scaling\": \"prefix\", \"clip\": 4.5},"
" \"min_rows\": 2, \"context\": \"prefix-causal\", \"chain\": {\"buffer\": null},"
" \"width\": 16, \"layers\": 2, \"heads\": 4, \"feedforward\": 32,"
" \"norm\": {\"kind\": \"rms\", \"placement\": \"pre\", \"eps\": 1e-6, \"final\": true}, "
"\"activation\": \"gelu\","
" \"attention\": {\"bias\": \"none\", \"sinks\": 2},"
" \"embedder\": {\"kind\": \"additive\", \"x\": {\"kind\": \"rows\", \"hidden\": 24, \"tokens\": "
"null, \"process\": true},"
"  \"y\": {\"kind\": \"mlp\", \"hidden\": [12]}, \"roles\": false, \"positions\": 0},"
" \"head\": {\"kind\": \"gaussian\", \"hidden\": [16], \"std\": \"softplus\"}}";

/* Sums over rows, with directions. */
static const char sums[] =
"{\"format\": 1, \"architecture\": \"sums\","
" \"inputs\": {\"max_features\": 64, \"scaling\": \"prefix\"}, \"target\": "
"{\"scaling\": \"prefix\"},"
" \"min_rows\": 4, \"context\": \"prefix-causal\", \"chain\": {\"buffer\": null},"
" \"waves\": 4, \"pairs\": 3, \"pair_waves\": 2, \"levels\": 2, \"buckets\": 3, "
"\"directions\": 2,"
" \"steps\": 5, \"points\": 3, \"linear\": true, \"profile\": \"matern\","
" \"lengths\": [1, 2], \"start\": 10, \"prior_shape\": 0.5, \"prior_rate\": 0.5,"
" \"noise_shape\": 0.5, \"noise_rate\": 0.005}";

/* Counts what the reader holds, so that every failure is also a leak test. */
static long held = 0;

static void *
count_alloc(void *arg, size_t size)
{
	(void) arg;
	held++;
	return malloc(size);
}

static void
count_free(void *arg, void *pointer)
{
	(void) arg;
	held--;
	free(pointer);
}

static const TnpEnv counting = {.alloc = count_alloc,.free = count_free};

static TnpStatus
parse(const char *text, TnpConfig *config, TnpError *error)
{
	return tnp_config_parse(&counting, text, strlen(text), config, error);
}

/*
 * base with the first `from` replaced by `to`; the caller frees it. Aborts the test where `from` is
 * not there.
 */
static char *
replaced(const char *base, const char *from, const char *to)
{
	const char *at = strstr(base, from);
	size_t		size = strlen(base) + strlen(to) + 1;
	char	   *text = malloc(size);

	if (at == NULL)
	{
		ok(false, "the base has %s", from);
		exit(1);
	}
	snprintf(text, size, "%.*s%s%s", (int) (at - base), base, to, at + strlen(from));
	return text;
}

typedef struct BadConfig
{
	const char *base;
	const char *from,
			   *to;
	const char *message;		/* a part of the message */
	const char *detail;			/* a part of the detail, or NULL */
} BadConfig;

static const BadConfig bad_configs[] = {
	/* the text */
	{additive, "{\"format\"", "[\"format\"", "the configuration is not valid JSON", "at byte"},
	{additive, "\"width\": 16,", "\"width\": 16, \"width\": 16,",
	 "the configuration is not valid JSON", "duplicate object key"},
	{additive, "\"layer\"", "\"\xff\"", "the configuration is not valid JSON", "0xff"},
	{additive, "\"layer\"", "\"a\\u0000b\"", "the configuration is not valid JSON", "\\u0000"},
	{additive, "\"eps\": 1e-5", "\"eps\": NaN", "the configuration is not valid JSON", NULL},
	{additive, "\"eps\": 1e-5", "\"eps\": 1e999", "the configuration is not valid JSON",
	 "overflow"},
	{additive, "\"width\": 16", "\"width\": 99999999999999999999",
	 "the configuration is not valid JSON", "too big integer"},
	{additive, "\"hidden\": [8, 9]", "\"hidden\": [[[[[[8]]]]]]",
	 "the configuration is nested too deeply", "9 levels, at most 8"},
	/* keys */
	{additive, "\"format\": 1", "\"format\": 2", "unknown model format 2", "known is 1"},
	{additive, "\"format\": 1", "\"format\": 1.0", "unknown model format 1.0", "known is 1"},
	{additive, "\"format\": 1", "\"format\": \"1\"", "unknown model format \"1\"", "known is 1"},
	{additive, "\"format\": 1, ", "", "configuration key \"format\" is missing", NULL},
	{additive, "\"width\": 16, ", "", "configuration key \"width\" is missing", NULL},
	{additive, "\"eps\": 1e-5, ", "", "configuration key \"norm.eps\" is missing", NULL},
	{additive, "\"bias\": \"all\"", "", "configuration key \"attention.bias\" is missing", NULL},
	{additive, "{\"kind\": \"linear\"}", "{}", "configuration key \"embedder.y.kind\" is missing",
	 NULL},
	{additive, "\"hidden\": [8, 9]", "\"hiden\": [8, 9]",
	 "unknown configuration key \"embedder.x.hiden\"", "known are kind, hidden"},
	{additive, "\"width\": 16", "\"width\": 16, \"dropout\": 0.1",
	 "unknown configuration key \"dropout\"", "known are format, "},
	{additive, "\"roles\": true", "\"roles\": true, \"flag\": true",
	 "unknown configuration key \"embedder.flag\"",
	"known are kind, x, y, roles, positions, activation"},
	{additive, "\"components\": 5", "\"components\": 5, \"tails\": \"bounded\"",
	 "unknown configuration key \"head.tails\"", NULL},
	{two_stream, "\"floor\": 0.25", "\"components\": 3",
	 "unknown configuration key \"head.components\"", NULL},
	{additive, "\"format\": 1", "\"format\": 1, \"a\\n\xc3\xa4\": 0",
	 "unknown configuration key \"a\?\?\"", NULL},
	/* types and ranges */
	{additive, "\"width\": 16", "\"width\": \"16\"",
	 "configuration key \"width\" must be an integer from 1 to 4096", "it is \"16\""},
	{additive, "\"width\": 16", "\"width\": 16.0", "\"width\" must be an integer from 1 to 4096",
	 "it is 16.0"},
	{additive, "\"width\": 16", "\"width\": 0", "\"width\" must be an integer from 1 to 4096",
	 "it is 0"},
	{additive, "\"width\": 16", "\"width\": 4097", "\"width\" must be an integer from 1 to 4096",
	 "it is 4097"},
	{additive, "\"width\": 16", "\"width\": 4294967312",
	 "\"width\" must be an integer from 1 to 4096", "it is 4294967312"},
	{additive, "\"width\": 16", "\"width\": -16", "\"width\" must be an integer from 1 to 4096",
	 "it is -16"},
	{additive, "\"width\": 16", "\"width\": null", "\"width\" must be an integer from 1 to 4096",
	 "it is null"},
	{additive, "\"layers\": 2", "\"layers\": 129", "\"layers\" must be an integer from 1 to 128",
	 "it is 129"},
	{additive, "\"feedforward\": 32", "\"feedforward\": 16385",
	 "\"feedforward\" must be an integer from 1 to 16384", "16385"},
	{additive, "\"min_rows\": 1", "\"min_rows\": 1000001",
	 "\"min_rows\" must be an integer from 0 to 1000000", "1000001"},
	{additive, "\"min_rows\": 1", "\"min_rows\": 1.5", "\"min_rows\" must be an integer",
	 "it is 1.5"},
	{additive, "\"features\": 2", "\"features\": 1025",
	 "\"inputs.features\" must be an integer from 1 to 1024", "1025"},
	{tabular, "\"max_features\": 6", "\"max_features\": 257",
	 "\"inputs.max_features\" must be an integer from 1 to 256", "257"},
	{tabular, "\"clip\": 3", "\"clip\": -1",
	 "\"inputs.clip\" must be a finite number of at least 0", "it is -1"},
	{tabular, "\"clip\": 4.5", "\"clip\": [4.5]",
	 "\"target.clip\" must be a finite number of at least 0", "an array of 1"},
	{additive, "\"eps\": 1e-5", "\"eps\": 0", "\"norm.eps\" must be a number from 1e-30 to 1",
	 "it is 0"},
	{additive, "\"eps\": 1e-5", "\"eps\": true", "\"norm.eps\" must be a number", "it is true"},
	{additive, "\"final\": true", "\"final\": 1", "\"norm.final\" must be true or false",
	 "it is 1"},
	{additive, "\"buffer\": 4", "\"buffer\": 0", "\"chain.buffer\" must be an integer from 1",
	 "it is 0"},
	{additive, "\"buffer\": 4", "\"buffer\": \"4\"",
	 "\"chain.buffer\" must be a positive integer or null", "it is \"4\""},
	{additive, "\"width\": 16", "\"limits\": {\"rows\": -1}, \"width\": 16",
	 "\"limits.rows\" must be an integer from 0 to 100000000", "it is -1"},
	{additive, "\"width\": 16", "\"limits\": {\"rows\": null}, \"width\": 16",
	 "\"limits.rows\" must be an integer from 0", "it is null"},
	{additive, "\"width\": 16", "\"limits\": {\"columns\": 3}, \"width\": 16",
	 "unknown configuration key \"limits.columns\"", "known are rows"},
	{additive, "\"width\": 16", "\"limits\": 5, \"width\": 16", "\"limits\" must be an object",
	 "it is 5"},
	{tabular, "\"sinks\": 2", "\"sinks\": 65",
	 "\"attention.sinks\" must be an integer from 0 to 64", "65"},
	{tabular, "\"log_scale\": true", "\"log_scale\": \"yes\"",
	 "\"attention.log_scale\" must be true or false", "yes"},
	{additive, "\"positions\": 3", "\"positions\": -3", "\"embedder.positions\" must be an integer",
	 "-3"},
	{additive, "[8, 9]", "[8, 0]", "\"embedder.x.hidden\" must be an integer from 1 to 16384",
	 "it is 0"},
	{additive, "[8, 9]", "[1,1,1,1,1,1,1,1,1]",
	 "\"embedder.x.hidden\" must be an array of at most 8 sizes", "an array of 9"},
	{additive, "[8, 9]", "8", "\"embedder.x.hidden\" must be an array of at most 8 sizes",
	 "it is 8"},
	{tabular, "\"hidden\": 24", "\"hidden\": [24]",
	 "\"embedder.x.hidden\" must be an integer from 1 to 16384", "an array of 1"},
	{tabular, "\"readouts\": 2", "\"readouts\": 0",
	 "\"embedder.x.tokens.readouts\" must be an integer from 1", "it is 0"},
	{tabular, "\"tokens\": {\"width\": 8, \"layers\": 1, \"heads\": 2, \"feedforward\": 16, "
			  "\"readouts\": 2}", "\"tokens\": 3",
	"\"embedder.x.tokens\" must be an object", "it is 3"},
	{tabular, ", \"feedforward\": 16", "", "\"embedder.x.tokens.feedforward\" is missing", NULL},
	{additive, "\"components\": 5", "\"components\": 1025",
	 "\"head.components\" must be an integer from 1 to 1024", "1025"},
	{tabular, "\"buckets\": 7", "\"buckets\": 65537",
	 "\"head.buckets\" must be an integer from 1 to 65536", "65537"},
	{two_stream, "\"floor\": 0.25", "\"floor\": -0.1",
	 "\"head.floor\" must be a finite number of at least 0", "it is -0.1"},
	{tabular, "\"a table reader\"", "7", "\"description\" must be a text", "it is 7"},
	{additive, "{\"bias\": \"all\"}", "\"all\"", "\"attention\" must be an object",
	 "it is \"all\""},
	{additive, "{\"kind\": \"linear\"}", "\"linear\"", "\"embedder.y\" must be an object",
	 "it is \"linear\""},
	/* unknown values */
	{additive, "\"packed\"", "\"perceiver\"", "unknown architecture \"perceiver\"",
	 "known are packed, two-stream"},
	{additive, "\"packed\"", "null", "unknown architecture null", "known are packed, two-stream"},
	{additive, "\"gelu\"", "\"swish\"", "unknown activation \"swish\"",
	 "known are relu, gelu, gelu-tanh"},
	{two_stream, "\"gelu-tanh\"", "\"tanh\"", "unknown embedder.activation \"tanh\"",
	 "known are relu, gelu, gelu-tanh"},
	{additive, "\"scaling\": \"none\"", "\"scaling\": \"zscore\"",
	 "unknown inputs.scaling \"zscore\"", "known are none, fixed, prefix"},
	{additive, "\"full\"", "\"sliding\"", "unknown context \"sliding\"",
	 "known are full, causal, prefix-causal"},
	{tabular, "\"inclusive\"", "\"loose\"", "unknown chain.mask \"loose\"",
	 "known are inclusive, strict"},
	{additive, "\"kind\": \"layer\"", "\"kind\": \"batch\"", "unknown norm.kind \"batch\"",
	 "known are layer, rms"},
	{additive, "\"pre\"", "\"sandwich\"", "unknown norm.placement \"sandwich\"",
	 "known are pre, post"},
	{additive, "\"all\"", "\"qk\"", "unknown attention.bias \"qk\"", "known are all, output, none"},
	{additive, "\"additive\"", "\"fourier\"", "unknown embedder.kind \"fourier\"",
	 "known are concat, additive"},
	{additive, "\"skip-mlp\"", "\"cnn\"", "unknown embedder.x.kind \"cnn\"",
	 "known are linear, mlp, skip-mlp, rows"},
	{additive, "{\"kind\": \"linear\"}", "{\"kind\": \"rows\", \"hidden\": 8, \"tokens\": null}",
	 "unknown embedder.y.kind \"rows\"",
	"known are linear, mlp, skip-mlp, classes"},
	{classes, "{\"kind\": \"rows\", \"hidden\": 24, \"tokens\": null}", "{\"kind\": \"classes\"}",
	 "unknown embedder.x.kind \"classes\"",
	"known are linear, mlp, skip-mlp, rows"},
	{classes, "\"scaling\": \"prefix\"", "\"scaling\": \"classes\"",
	 "unknown inputs.scaling \"classes\"", "known are none, fixed, prefix"},
	{classes, "\"classes\": 10", "\"classes\": 65",
	 "\"head.classes\" must be an integer from 2 to 64", "65"},
	{classes, "\"classes\": 10", "\"classes\": 1",
	 "\"head.classes\" must be an integer from 2 to 64", "1"},
	{additive, "\"mixture\"", "\"flow\"", "unknown head.kind \"flow\"",
	 "known are gaussian, mixture, bars, classes"},
	{additive, "\"softplus\"", "\"abs\"", "unknown head.std \"abs\"",
	 "known are exp, bounded, softplus, softplus-complement, sqrt-softplus"},
	{tabular, "\"half-normal\"", "\"laplace\"", "unknown head.tails \"laplace\"",
	 "known are bounded, half-normal"},
	/* rules */
	{additive, "\"features\": 2, ", "", "one of inputs.features and inputs.max_features is needed",
	 NULL},
	{tabular, "\"max_features\": 6", "\"max_features\": 6, \"features\": 6",
	 "inputs.features and inputs.max_features exclude each other", NULL},
	{additive, "\"features\": 2", "\"max_features\": 2",
	 "inputs.max_features needs the embedder's x.kind \"rows\"", NULL},
	{tabular, "\"max_features\"", "\"features\"",
	 "the embedder's x.kind \"rows\" needs inputs.max_features", NULL},
	{tabular, "\"scaling\": \"prefix\", \"clip\": 3", "\"scaling\": \"none\"",
	 "needs inputs.scaling \"prefix\"", NULL},
	{tabular, "\"scaling\": \"prefix\", \"clip\": 4.5", "\"scaling\": \"none\"",
	 "needs target.scaling \"prefix\"", NULL},
	{additive, "\"scaling\": \"none\"", "\"scaling\": \"fixed\"",
	 "inputs.scaling \"fixed\" needs inputs.center and inputs.scale", NULL},
	{additive, "\"scaling\": \"none\"", "\"scaling\": \"fixed\", \"center\": [0, 0]",
	 "needs inputs.center and inputs.scale", NULL},
	{additive, "\"scaling\": \"none\"", "\"scaling\": \"none\", \"center\": [0, 0]",
	 "are for inputs.scaling \"fixed\"", NULL},
	{additive, "\"scaling\": \"none\"",
	 "\"scaling\": \"fixed\", \"center\": [0], \"scale\": [1, 1]",
	"\"inputs.center\" must be an array of one number for each", "an array of 1"},
	{additive, "\"scaling\": \"none\"",
	 "\"scaling\": \"fixed\", \"center\": [0, 0], \"scale\": [1, 0]",
	"\"inputs.scale\" must be a finite number above 0", "it is 0"},
	{additive, "\"scaling\": \"none\"",
	 "\"scaling\": \"fixed\", \"center\": [0, \"a\"], \"scale\": [1, 1]",
	"\"inputs.center\" must be a finite number", "it is \"a\""},
	{tabular, "\"clip\": 3", "\"center\": [0, 0]",
	 "\"inputs.center\" must be an array of one number", NULL},
	{additive, "\"target\": {\"scaling\": \"none\"", "\"target\": {\"scaling\": \"fixed\"",
	 "needs target.center and target.scale", NULL},
	{additive, "\"target\": {\"scaling\": \"none\"",
	 "\"target\": {\"scaling\": \"fixed\", \"center\": 1", "needs target.center and target.scale",
	 NULL},
	{additive, "\"target\": {\"scaling\": \"none\"",
	 "\"target\": {\"scaling\": \"none\", \"scale\": 1", "are for target.scaling \"fixed\"", NULL},
	{additive, "\"target\": {\"scaling\": \"none\"",
	 "\"target\": {\"scaling\": \"fixed\", \"center\": 0, \"scale\": -1",
	"\"target.scale\" must be a finite number above 0", "it is -1"},
	{additive, "\"target\": {", "\"target\": {\"count\": 0, ",
	 "\"target.count\" must be an integer from 1 to 64", "it is 0"},
	{additive, "\"target\": {", "\"target\": {\"count\": 65, ",
	 "\"target.count\" must be an integer from 1 to 64", "it is 65"},
	{additive, "\"target\": {\"scaling\": \"none\"",
	 "\"target\": {\"count\": 2, \"scaling\": \"fixed\", \"center\": 1, \"scale\": 1",
	 "\"target.center\" must be an array of one number for each of target.count", "it is 1"},
	{additive, "\"target\": {\"scaling\": \"none\"",
	 "\"target\": {\"center\": [1, 1, 1], \"count\": 2, \"scaling\": \"fixed\", "
	 "\"scale\": [1, 1]",
	 "\"target.center\" must be an array of one number", "an array of 3"},
	{additive, "\"target\": {\"scaling\": \"none\"",
	 "\"target\": {\"count\": 2, \"scaling\": \"fixed\", \"center\": [1, 1], "
	 "\"scale\": [1, 0]",
	 "\"target.scale\" must be a finite number above 0", "it is 0"},
	{additive, "\"target\": {\"scaling\": \"none\"",
	 "\"target\": {\"scaling\": \"fixed\", \"center\": [1], \"scale\": 1",
	 "\"target.center\" must be a finite number", "an array of 1"},
	{tabular, "\"target\": {", "\"target\": {\"count\": 2, ",
	 "the embedder's x.kind \"rows\" takes one target per row", "target.count is 2"},
	{classes, "\"target\": {", "\"target\": {\"count\": 2, ",
	 "the embedder's x.kind \"rows\" takes one target per row", "target.count is 2"},
	{tabular, "\"clip\": 4.5", "\"clip\": 0", "embedder.x.ridge needs target.clip", NULL},
	{tabular, "\"clip\": 3}", "\"clip\": 0}", "embedder.x.ridge needs inputs.clip", NULL},
	{tabular, "\"ridge\": true}", "\"prune\": true}", "embedder.x.prune needs embedder.x.ridge",
	 NULL},
	{classes, "\"tokens\": null}", "\"tokens\": null, \"ridge\": true}",
	 "embedder.x.ridge needs inputs.clip", NULL},
	{classes, "\"tokens\": null}", "\"tokens\": null, \"logistic\": true}",
	 "embedder.x.logistic needs inputs.clip", NULL},
	{tabular, "\"ridge\": true}", "\"logistic\": true}", "embedder.x.logistic is for classifiers",
	 NULL},
	{classes, "\"classes\": 10}}", "\"classes\": 10, \"logistic\": 0.5}}",
	 "head.logistic needs embedder.x.logistic", NULL},
	{classes, "\"classes\": 10}}", "\"classes\": 10, \"logistic\": 1.5}}",
	 "\"head.logistic\" must be a number from 0 to 1", "it is 1.5"},
	{classes, "\"classes\": 10}}", "\"classes\": 10, \"trees\": 0.5}}",
	 "head.trees needs embedder.x.logistic", NULL},
	{classes, "\"classes\": 10}}", "\"classes\": 10, \"class_process\": 0.5}}",
	 "head.class_process needs embedder.x.logistic", NULL},
	{classes, "\"classes\": 10}}", "\"classes\": 10, \"class_process\": 1.5}}",
	 "\"head.class_process\" must be a number from 0 to 1", "it is 1.5"},
	{classes, "\"classes\": 10}}", "\"classes\": 10, \"trees\": -0.5}}",
	 "\"head.trees\" must be a number from 0 to 1", "it is -0.5"},
	{classes, "\"tokens\": null}", "\"tokens\": null, \"process\": true}",
	 "embedder.x.process is for regression models", NULL},
	{tabular, "\"ridge\": true}", "\"absent\": true}", "embedder.x.absent needs embedder.x.ridge",
	 NULL},
	{tabular, "\"ridge\": true}", "\"ridge\": true, \"pairs\": true}",
	 "embedder.x.pairs needs embedder.x.prune", NULL},
	{tabular, "\"ridge\": true}", "\"ridge\": true, \"prune\": true, \"prune_judged\": true}",
	 "embedder.x.prune_judged needs embedder.x.prune and embedder.x.process", NULL},
	{tabular, "\"ridge\": true}", "\"ridge\": true, \"nearest\": true}",
	 "embedder.x.nearest needs embedder.x.process", NULL},
	{tabular, "\"ridge\": true}", "\"ridge\": true, \"line\": true}",
	 "embedder.x.line needs embedder.x.process", NULL},
	{tabular, "\"ridge\": true}", "\"ridge\": true, \"labels\": true}",
	 "embedder.x.labels needs embedder.x.process or embedder.x.logistic", NULL},
	{tabular, "\"ridge\": true}", "\"ridge\": true, \"prune_below\": 30}",
	 "embedder.x.prune_below needs embedder.x.prune", NULL},
	{tabular, "\"ridge\": true}", "\"ridge\": true, \"prune\": true, \"prune_below\": 0}",
	"\"embedder.x.prune_below\" must be an integer from 1", "it is 0"},
	{tabular, "\"ridge\": true}", "\"ridge\": true, \"codes\": \"names\"}",
	 "unknown embedder.x.codes \"names\"", "known are identity, targets"},
	{additive, "\"components\": 5", "\"components\": 5, \"process_behind\": true",
	 "head.process_behind needs head.process", NULL},
	{additive, "\"components\": 5", "\"components\": 5, \"process_record\": true",
	 "head.process_record needs head.process and embedder.x.ridge", NULL},
	{additive, "\"components\": 5", "\"components\": 5, \"few_values\": 0.5",
	 "head.few_values needs head.trees and embedder.x.ridge", NULL},
	{additive, "\"target\": {", "\"target\": {\"far\": 9, ",
	 "target.far needs the embedder's x.kind \"rows\" and one target, which is a number", NULL},
	{additive, "\"inputs\": {", "\"inputs\": {\"far\": 9, ",
	 "inputs.far needs the embedder's x.kind \"rows\"", NULL},
	{additive, "\"components\": 5", "\"components\": 5, \"levels\": 0.5",
	 "head.levels needs head.process", NULL},
	{additive, "\"components\": 5", "\"components\": 5, \"rare\": 6",
	 "head.rare needs head.process", NULL},
	{tabular, "\"target\": {\"scaling\": \"prefix\"",
	 "\"target\": {\"scaling\": \"prefix\", \"order\": \"counts\"",
	 "target.order \"counts\" needs target.scaling \"classes\"", NULL},
	{tabular, "\"ridge\": true}", "\"ridge\": true, \"split\": 17}",
	"\"embedder.x.split\" must be an integer from 2", "it is 17"},
	{tabular, "\"ridge\": true}", "\"ridge\": true, \"donors\": 65}",
	"\"embedder.x.donors\" must be an integer from 1", "it is 65"},
	{classes, "\"tokens\": null}", "\"tokens\": null, \"donors\": 8}",
	 "embedder.x.donors needs inputs.clip", NULL},
	{lending, "\"components\": 5", "\"components\": 257",
	 "embedder.x.donors are too many for so many components",
	 "embedder.x.donors is 15, head.components is 257"},
	{lending, "\"kind\": \"mixture\", \"hidden\": [], \"components\": 5, \"std\": \"exp\"",
	 "\"kind\": \"joint-gaussian\", \"hidden\": [], \"layers\": 1, \"projector\": [], "
	 "\"rank\": 2", "embedder.x.donors excludes head.kind \"joint-gaussian\"", NULL},
	{lending, "\"donors\": 15", "\"donors\": 15, \"shift\": true",
	 "embedder.x.shift needs embedder.x.donors and process", NULL},
	{tabular, "\"ridge\": true}", "\"ridge\": true, \"process\": true, \"shift\": true}",
	 "embedder.x.shift needs embedder.x.donors and process", NULL},
	{lending, "\"donors\": 15", "\"donors\": 15, \"process\": true, \"shift\": 1",
	 "\"embedder.x.shift\" must be true or false", NULL},
	{classes, "\"sinks\": 2", "\"kernel\": {\"basis\": 2}",
	 "\"attention.kernel\" must be an object with components where columns are more than 64 or any "
	 "number", NULL},
	{classes, "\"tokens\": null}", "\"tokens\": null, \"absent\": true}",
	 "embedder.x.absent is for regression models", NULL},
	{classes, "\"tokens\": null}", "\"tokens\": null, \"codes\": \"targets\"}",
	 "embedder.x.codes \"targets\" of a classifier needs target.order \"counts\"", NULL},
	{classes, "\"tokens\": null}", "\"tokens\": null, \"orient\": true}",
	 "embedder.x.orient of a classifier needs target.order \"counts\"", NULL},
	{lending, "\"kind\": \"mixture\", \"hidden\": [], \"components\": 5, \"std\": \"exp\"",
	 "\"kind\": \"bars\", \"hidden\": [], \"buckets\": 5, \"tails\": \"bounded\"",
	 "embedder.x.orient needs head.kind \"gaussian\" or \"mixture\"", NULL},
	{additive, "\"components\": 5", "\"components\": 5, \"process\": 8",
	 "head.process needs embedder.x.process", NULL},
	{additive, "\"components\": 5", "\"components\": 5, \"process\": 257",
	 "\"head.process\" must be an integer from 1 to 256", "it is 257"},
	{process, "\"clip\": 4.5", "\"clip\": 0", "embedder.x.process needs target.clip", NULL},
	{process, "\"clip\": 3}", "\"clip\": 0}", "embedder.x.process needs inputs.clip", NULL},
	{process, "\"process\": true", "\"process\": 1", "\"embedder.x.process\" must be true or false",
	 "1"},
	{process, "\"process\": true", "\"process\": true, \"directions\": 9",
	 "\"embedder.x.directions\" must be an integer from 1 to 8", "it is 9"},
	{process, "\"process\": true", "\"directions\": 2",
	 "embedder.x.directions needs embedder.x.process", NULL},
	{process, "\"process\": true", "\"process\": true, \"additive\": 1",
	 "\"embedder.x.additive\" must be true or false", "1"},
	{process, "\"process\": true", "\"additive\": true",
	 "embedder.x.additive needs embedder.x.process", NULL},
	{classes, "\"tokens\": null}", "\"tokens\": null, \"ridge\": true, \"prune\": true}",
	 "embedder.x.prune is for regression models", NULL},
	{two_stream, "\"causal\"", "\"prefix-causal\"",
	 "two-stream models exclude context \"prefix-causal\"", NULL},
	{two_stream, "\"bias\": \"output\"", "\"bias\": \"output\", \"sinks\": 1",
	 "two-stream models exclude attention.sinks", "attention.sinks is 1"},
	{two_stream, "\"bias\": \"output\"", "\"bias\": \"output\", \"log_scale\": true",
	 "two-stream models exclude attention.log_scale", NULL},
	{additive, "\"packed\"", "\"two-stream\"", "two-stream models exclude embedder.positions",
	 "embedder.positions is 3"},
	{additive, "\"min_rows\": 1", "\"min_rows\": 0",
	 "min_rows must be at least 1 in a model without attention.sinks", "min_rows is 0"},
	{additive, "\"target\": {\"scaling\": \"none\"", "\"target\": {\"scaling\": \"prefix\"",
	"min_rows must be at least 2 where a scaling is \"prefix\"", "min_rows is 1"},
	{tabular, "\"min_rows\": 2", "\"min_rows\": 1",
	 "min_rows must be at least 2 where a scaling is \"prefix\"", "min_rows is 1"},
	{two_stream, "\"buffer\": null", "\"buffer\": 4",
	 "chain.buffer must be null unless context is \"full\"", "chain.buffer is 4"},
	{tabular, "\"buffer\": null", "\"buffer\": 4",
	 "chain.buffer must be null unless context is \"full\"", "chain.buffer is 4"},
	{tabular, "\"positions\": 0", "\"positions\": 1",
	 "embedder.positions must be 0 unless context is \"full\"", "embedder.positions is 1"},
	{tabular, "\"inclusive\"", "\"strict\"", "chain.mask \"strict\" needs context \"full\"", NULL},
	{additive, "\"buffer\": 4", "\"buffer\": null",
	 "embedder.positions needs a limit in chain.buffer", "embedder.positions is 3"},
	{additive, "\"buffer\": 4", "\"buffer\": 5",
	 "embedder.positions must be at least chain.buffer - 1",
	"embedder.positions is 3, chain.buffer is 5"},
	{additive, "\"heads\": 4", "\"heads\": 5", "heads must divide width",
	 "heads is 5, width is 16"},
	{tabular, "\"heads\": 2", "\"heads\": 3",
	 "embedder.x.tokens.heads must divide embedder.x.tokens.width", "heads is 3, width is 8"},
	{two_stream, "\"sqrt-softplus\"", "\"exp\"", "head.floor must be 0", NULL},
	{two_stream, "\"sqrt-softplus\"", "\"bounded\"", "head.floor must be 0", NULL},
	{two_stream, "\"sqrt-softplus\", \"floor\": 0.25", "\"softplus-complement\", \"floor\": 1",
	 "head.floor must be below 1", NULL},
	{classes, "\"kind\": \"classes\", \"hidden\": [16], \"classes\": 10",
	 "\"kind\": \"gaussian\", \"hidden\": [16], \"std\": \"exp\"",
	"target.scaling \"classes\" needs head.kind \"classes\"", NULL},
	{classes, "\"target\": {\"scaling\": \"classes\"", "\"target\": {\"scaling\": \"prefix\"",
	 "head.kind \"classes\" needs target.scaling \"classes\"", NULL},
	{classes, "\"y\": {\"kind\": \"classes\"}", "\"y\": {\"kind\": \"linear\"}",
	"target.scaling \"classes\" needs the embedder's y.kind \"classes\"", NULL},
	{additive, "{\"kind\": \"linear\"}", "{\"kind\": \"classes\"}",
	 "the embedder's y.kind \"classes\" needs target.scaling \"classes\"", NULL},
	{classes, "\"scaling\": \"classes\"", "\"scaling\": \"classes\", \"clip\": 3",
	 "target.clip must be 0", NULL},
	{tabular, "\"buckets\": 7", "\"buckets\": 1",
	 "head.tails \"half-normal\" needs at least 2 buckets", "head.buckets is 1"},
	{sums, "\"directions\": 2", "\"directions\": 9",
	 "\"directions\" must be an integer from 0 to 8", "it is 9"},
	{sums, "\"directions\": 2", "\"directions\": true",
	 "\"directions\" must be an integer from 0 to 8", "it is true"},
	{sums, "\"waves\": 4", "\"waves\": 0", "directions need waves",
	 "directions is 2, waves is 0"},
};

static void
test_bad_configs(void)
{
	for (size_t i = 0; i < sizeof(bad_configs) / sizeof(bad_configs[0]); i++)
	{
		const BadConfig *bad = &bad_configs[i];
		char	   *text = replaced(bad->base, bad->from, bad->to);
		TnpConfig	config;
		TnpError	error = {TNP_OK, "", ""};
		TnpStatus	status = parse(text, &config, &error);
		bool		as_said = status == TNP_BAD_CONFIG && error.status == status &&
			strstr(error.message, bad->message) != NULL &&
			(bad->detail == NULL || strstr(error.detail, bad->detail) != NULL);

		if (!ok(as_said, "%s", bad->message))
			diag("status %d, message \"%s\", detail \"%s\", for %s", status, error.message,
				 error.detail, bad->to);
		ok(held == 0, "  and nothing is held");
		free(text);
	}
}

/* Whole texts that are no object at all. */
static void
test_bad_texts(void)
{
	static const char *const texts[] = {"", "   ", "[]", "\"packed\"", "{", "{}}", "{} x", "nul",
										"\xef\xbb\xbf{}", "{\"format\": 1,}", "{'format': 1}"};
	TnpConfig	config;
	TnpError	error;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		error.message[0] = '\0';
		ok(parse(texts[i], &config, &error) == TNP_BAD_CONFIG && error.message[0] != '\0',
		   "not a configuration: %s", texts[i]);
	}
	ok(tnp_config_parse(&counting, additive, sizeof(additive) - 2, &config, &error) ==
	   TNP_BAD_CONFIG, "one byte short");
	ok(tnp_config_parse(&counting, additive, sizeof(additive), &config, &error) == TNP_BAD_CONFIG,
	   "one byte (a NUL) too many");
	is_int(held, 0, "nothing is held after malformed texts");
}

static void
test_values(void)
{
	char	   *text;
	TnpConfig	c;
	TnpError	error;

	is_int(parse(additive, &c, &error), TNP_OK, "an additive packed model is read");
	is_string(c.description, "", "description defaults to nothing");
	ok(strcmp(c.family->name, "packed") == 0 && c.context == TNP_FULL && c.min_rows == 1,
	   "architecture, context, min_rows");
	ok(c.n_features == 2 && c.max_features == 2,
	   "max_features is the exact number where that is given");
	ok(c.input_scaling == TNP_SCALE_NONE && c.input_center == NULL && c.input_scale == NULL &&
	   c.input_clip == 0, "input defaults");
	ok(c.target_scaling == TNP_SCALE_NONE && c.target_center[0] == 0 && c.target_scale[0] == 1 &&
	   c.target_clip == 0, "target defaults");
	ok(c.buffer == 4 && !c.strict, "the mask is inclusive by default");
	is_int(c.row_limit, 20000, "rows are limited by default");
	ok(c.width == 16 && c.layers == 2 && c.heads == 4 && c.feedforward == 32, "sizes");
	ok(c.norm == TNP_LAYER_NORM && !c.post_norm && c.final_norm && c.norm_eps == 1e-5, "norm");
	ok(c.bias == TNP_BIAS_ALL && c.sinks == 0 && !c.log_scale, "attention defaults");
	ok(c.activation == TNP_GELU && c.embedder_activation == TNP_GELU &&
	   c.head_activation == TNP_GELU, "the trunk's activation is the default");
	ok(c.embedder == TNP_ADDITIVE && c.roles && c.positions == 3, "embedder");
	ok(c.encode_x.kind == TNP_ENCODE_SKIP_MLP && c.encode_x.hidden.n == 2 &&
	   c.encode_x.hidden.size[0] == 8 && c.encode_x.hidden.size[1] == 9, "x");
	ok(c.encode_y.kind == TNP_ENCODE_LINEAR && c.encode_y.hidden.n == 0 &&
	   c.encode_x.token_width == 0, "y");
	ok(c.head == TNP_HEAD_MIXTURE && c.head_outputs == 5 && c.std_map == TNP_STD_SOFTPLUS &&
	   c.std_floor == 0, "head");
	ok(c.head_hidden.n == 1 && c.head_hidden.size[0] == 16, "head hidden");
	tnp_config_free(&counting, &c);

	is_int(parse(two_stream, &c, &error), TNP_OK, "a two-stream model is read");
	ok(strcmp(c.family->name, "two-stream") == 0 && c.context == TNP_CAUSAL && c.buffer == 0,
	   "architecture, context, no limit of the chain");
	ok(c.norm == TNP_RMS_NORM && c.post_norm && !c.final_norm && c.bias == TNP_BIAS_OUTPUT,
	   "norm, bias");
	ok(c.embedder == TNP_CONCAT && c.concat_flag && c.concat_hidden.n == 0, "embedder");
	ok(c.activation == TNP_RELU && c.embedder_activation == TNP_GELU_TANH &&
	   c.head_activation == TNP_RELU, "an activation of its own");
	ok(c.head == TNP_HEAD_GAUSSIAN && c.head_outputs == 1 && c.std_map == TNP_STD_SQRT_SOFTPLUS &&
	   c.std_floor == 0.25, "head");
	tnp_config_free(&counting, &c);

	is_int(parse(tabular, &c, &error), TNP_OK, "a row tokeniser model is read");
	is_string(c.description, "a table reader", "description");
	ok(c.n_features == 0 && c.max_features == 6 && c.input_clip == 3 && c.target_clip == 4.5 &&
	   c.min_rows == 2, "inputs, target");
	ok(c.context == TNP_PREFIX_CAUSAL && c.bias == TNP_BIAS_NONE && c.sinks == 2 && c.log_scale,
	   "attention");
	ok(c.encode_x.kind == TNP_ENCODE_ROWS && c.encode_x.hidden.n == 1 &&
	   c.encode_x.hidden.size[0] == 24, "rows");
	ok(c.encode_x.token_width == 8 && c.encode_x.token_layers == 1 && c.encode_x.token_heads == 2 &&
	   c.encode_x.token_feedforward == 16 && c.encode_x.token_readouts == 2, "tokens");
	ok(c.encode_y.kind == TNP_ENCODE_MLP && c.encode_y.hidden.size[0] == 12, "y");
	ok(c.head == TNP_HEAD_BARS && c.head_outputs == 7 && c.half_normal_tails &&
	   c.head_activation == TNP_RELU, "head");
	tnp_config_free(&counting, &c);

	text = replaced(tabular, "{\"width\": 8, \"layers\": 1, \"heads\": 2, \"feedforward\": 16, "
							 "\"readouts\": 2}", "null");
	is_int(parse(text, &c, &error), TNP_OK, "the row tokeniser without tokens is read");
	ok(c.encode_x.kind == TNP_ENCODE_ROWS && c.encode_x.token_width == 0 &&
	   c.encode_x.token_layers == 0, "and has no path B");
	tnp_config_free(&counting, &c);
	free(text);

	text = replaced(additive, "\"scaling\": \"none\"}, \"target\": {\"scaling\": \"none\"}",
					"\"scale\": [2, 3.5], \"center\": [-1, 1e3], \"scaling\": \"fixed\"}, "
					"\"target\": {\"scaling\": \"fixed\", \"center\": -7, \"scale\": 0.5}");
	is_int(parse(text, &c, &error), TNP_OK,
		   "fixed scaling is read, whatever the order of the keys");
	ok(c.input_center[0] == -1 && c.input_center[1] == 1000 && c.input_scale[0] == 2 &&
	   c.input_scale[1] == 3.5, "center, scale");
	ok(c.target_center[0] == -7 && c.target_scale[0] == 0.5, "of the target too");
	tnp_config_free(&counting, &c);
	free(text);

	text = replaced(additive, "\"buffer\": 4", "\"buffer\": 4, \"mask\": \"strict\"");
	is_int(parse(text, &c, &error), TNP_OK, "a strict mask is read");
	ok(c.strict, "and is strict");
	tnp_config_free(&counting, &c);
	free(text);

	text = replaced(additive, "\"width\": 16", "\"limits\": {\"rows\": 0}, \"width\": 16");
	is_int(parse(text, &c, &error), TNP_OK, "a limit of rows is read");
	is_int(c.row_limit, 0, "which is none");
	tnp_config_free(&counting, &c);
	free(text);
	is_int(held, 0, "nothing is held after tnp_config_free");
}

/* The description is cut between characters and is one line. */
static void
test_description(void)
{
	char		description[400] = "\"";
	char	   *text;
	TnpConfig	c;
	TnpError	error;

	for (int i = 0; i < 100; i++)
		strcat(description, "\xe2\x82\xac");
	strcat(description, "\"");
	text = replaced(tabular, "\"a table reader\"", description);
	is_int(parse(text, &c, &error), TNP_OK, "a description of 300 bytes is read");
	is_int((long long) strlen(c.description), 255,
		   "and cut at 255 bytes, which is a character's end here");
	tnp_config_free(&counting, &c);
	free(text);

	description[1] = 'x';
	description[2] = 'y';
	description[3] = 'z';
	description[4] = 'a';
	memmove(description + 5, description + 7, strlen(description + 7) + 1);
	text = replaced(tabular, "\"a table reader\"", description);
	is_int(parse(text, &c, &error), TNP_OK,
		   "a description that would be cut within a character is read");
	is_int((long long) strlen(c.description), 253, "and cut before it");
	tnp_config_free(&counting, &c);
	free(text);

	text = replaced(tabular, "\"a table reader\"", "\"one\\ntwo\\u007f\"");
	is_int(parse(text, &c, &error), TNP_OK, "a description with control characters is read");
	is_string(c.description, "one two ", "and they are spaces");
	tnp_config_free(&counting, &c);
	free(text);
}

int
main(void)
{
	test_values();
	test_description();
	test_bad_configs();
	test_bad_texts();
	return done_testing();
}
