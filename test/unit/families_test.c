/*
 * families_test.c: configurations of the families of models: what is read, and what is refused.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>
#include <string.h>

#include "engine/file/config.h"
#include "tap.h"

#define COMMON \
	"\"format\": 1, \"inputs\": {\"features\": 2, \"scaling\": \"none\"}," \
	"\"target\": {\"scaling\": \"none\"}, \"width\": 8, \"activation\": \"relu\"," \
	"\"head\": {\"kind\": \"gaussian\", \"hidden\": [], \"std\": \"exp\"},"

static const char mean[] = "{" COMMON
	"\"architecture\": \"mean\", \"min_rows\": 0, \"context\": \"causal\","
	"\"chain\": {\"buffer\": null},"
	"\"embedder\": {\"kind\": \"concat\", \"hidden\": [16], \"flag\": false}}";

#define STACK \
	"\"layers\": 2, \"heads\": 2, \"feedforward\": 8, \"attention\": {\"bias\": \"all\"}," \
	"\"norm\": {\"kind\": \"layer\", \"placement\": \"pre\", \"eps\": 1e-5, \"final\": true},"

static const char latent[] = "{" COMMON STACK
	"\"architecture\": \"latent\", \"latents\": 4, \"min_rows\": 1, \"context\": \"full\","
	"\"chain\": {\"buffer\": 3},"
	"\"embedder\": {\"kind\": \"concat\", \"hidden\": [16], \"flag\": true}}";

static const char buffered[] = "{" COMMON STACK
	"\"architecture\": \"buffered\", \"min_rows\": 1, \"context\": \"full\","
	"\"chain\": {\"buffer\": 3},"
	"\"embedder\": {\"kind\": \"concat\", \"hidden\": [16], \"flag\": true}}";

static const char decoupled[] = "{" COMMON STACK
	"\"architecture\": \"decoupled\", \"min_rows\": 2, \"context\": \"full\","
	"\"chain\": {\"buffer\": 1}, \"backbone\": {\"kind\": \"attention\"},"
	"\"embedder\": {\"kind\": \"separate\", \"x\": {\"kind\": \"linear\"},"
	" \"y\": {\"kind\": \"mlp\", \"hidden\": [4]}}}";

static const char recurrent[] = "{" COMMON
	"\"layers\": 2, \"heads\": 2, \"attention\": {\"bias\": \"all\"},"
	"\"norm\": {\"kind\": \"layer\", \"placement\": \"pre\", \"eps\": 1e-5, \"final\": true},"
	"\"architecture\": \"decoupled\", \"min_rows\": 1, \"context\": \"causal\","
	"\"chain\": {\"buffer\": null}, \"backbone\": {\"kind\": \"lstm\"},"
	"\"embedder\": {\"kind\": \"separate\", \"x\": {\"kind\": \"linear\"},"
	" \"y\": {\"kind\": \"linear\"}}}";

static const char scan[] = "{" COMMON
	"\"layers\": 2, \"heads\": 2, \"feedforward\": 8,"
	"\"norm\": {\"kind\": \"layer\", \"placement\": \"pre\", \"eps\": 1e-5, \"final\": true},"
	"\"attention\": {\"bias\": \"all\", \"query_width\": 12, \"value_hidden\": [6],"
	" \"kernel\": {\"basis\": 3, \"components\": [[1], [0, 1]], \"causal\": 0}},"
	"\"architecture\": \"packed\", \"min_rows\": 1, \"context\": \"full\","
	"\"chain\": {\"buffer\": 1},"
	"\"embedder\": {\"kind\": \"parts\", \"observed\": 4, \"x\": {\"kind\": \"none\"},"
	" \"y\": {\"kind\": \"linear\", \"width\": 3}, \"hidden\": [9], \"norm\": true}}";

static const char deep[] = "{" COMMON
	"\"layers\": 2, \"heads\": 1, \"feedforward\": 8,"
	"\"norm\": {\"kind\": \"layer\", \"placement\": \"pre\", \"eps\": 1e-5, \"final\": true},"
	"\"attention\": {\"bias\": \"all\", \"kind\": \"deep-kernel\", \"features\": 6,"
	" \"hidden\": [5], \"position\": false},"
	"\"architecture\": \"packed\", \"min_rows\": 1, \"context\": \"full\","
	"\"chain\": {\"buffer\": 1},"
	"\"embedder\": {\"kind\": \"concat\", \"hidden\": [16], \"flag\": true}}";

static const char performer[] = "{" COMMON
	"\"layers\": 2, \"heads\": 2, \"feedforward\": 8,"
	"\"norm\": {\"kind\": \"layer\", \"placement\": \"pre\", \"eps\": 1e-5, \"final\": true},"
	"\"attention\": {\"bias\": \"all\", \"kind\": \"random-features\", \"features\": 6},"
	"\"architecture\": \"packed\", \"min_rows\": 1, \"context\": \"causal\","
	"\"chain\": {\"buffer\": null},"
	"\"embedder\": {\"kind\": \"concat\", \"hidden\": [16], \"flag\": true}}";

static const char set[] = "{"
	"\"format\": 1, \"inputs\": {\"max_features\": 9, \"scaling\": \"prefix\"},"
	"\"target\": {\"scaling\": \"none\"}, \"width\": 8, \"activation\": \"relu\","
	"\"head\": {\"kind\": \"gaussian\", \"hidden\": [], \"std\": \"exp\"}," STACK
	"\"architecture\": \"packed\", \"min_rows\": 2, \"context\": \"full\","
	"\"chain\": {\"buffer\": 3},"
	"\"embedder\": {\"kind\": \"set\", \"y\": {\"kind\": \"linear\"}, \"roles\": false,"
	" \"positions\": 0, \"columns\": {\"width\": 4, \"layers\": 1, \"heads\": 4,"
	" \"feedforward\": 5, \"inducing\": 3}, \"rows\": {\"layers\": 1, \"heads\": 2,"
	" \"feedforward\": 6, \"readouts\": 2, \"take\": \"all\", \"rotary\": 100,"
	" \"layout\": \"half\"}}}";

static const char sums[] = "{"
	"\"format\": 1, \"inputs\": {\"max_features\": 9, \"scaling\": \"prefix\"},"
	"\"target\": {\"scaling\": \"prefix\"}, \"architecture\": \"sums\", \"min_rows\": 4,"
	"\"context\": \"prefix-causal\", \"chain\": {\"buffer\": null}, \"waves\": 4, \"pairs\": 3,"
	"\"pair_waves\": 2, \"levels\": 2, \"buckets\": 3, \"steps\": 5, \"points\": 3,"
	"\"linear\": true, \"profile\": \"matern\", \"lengths\": [1.0, 2.0], \"start\": 10.0,"
	"\"prior_shape\": 0.5, \"prior_rate\": 0.5, \"noise_shape\": 0.5, \"noise_rate\": 0.005}";

/* `from` becomes `to`, and the message has a part. */
typedef struct Refused
{
	const char *base,
			   *from,
			   *to,
			   *message;
} Refused;

static const Refused refused[] = {
	{mean, "\"causal\"", "\"full\"", "needs context \"causal\" or \"prefix-causal\""},
	{mean, "\"buffer\": null", "\"buffer\": 3", "chain.buffer must be null"},
	{mean, "\"flag\": false", "\"flag\": true", "needs embedder.kind \"concat\" without a flag"},
	{mean, "\"width\": 8", "\"width\": 8, \"heads\": 2", "unknown configuration key \"heads\""},
	{latent, "\"full\"", "\"causal\"", "chain.buffer must be null"},
	{latent, "\"latents\": 4", "\"latents\": 0", "\"latents\" must be an integer from 1 to 4096"},
	{latent, "\"latents\": 4, ", "", "configuration key \"latents\" is missing"},
	{latent, "\"bias\": \"all\"", "\"bias\": \"all\", \"sinks\": 2", "excludes attention.sinks"},
	{latent, "\"heads\": 2", "\"heads\": 3", "heads must divide width"},
	{latent, "\"min_rows\": 1", "\"min_rows\": 0", "min_rows must be at least 1"},
	{buffered, "\"full\"", "\"causal\"", "chain.buffer must be null"},
	{buffered, "\"buffer\": 3", "\"buffer\": null", "needs a limit in chain.buffer"},
	{buffered, "\"pre\"", "\"post\"", "needs norm.placement \"pre\""},
	{buffered, "\"bias\": \"all\"", "\"bias\": \"all\", \"sinks\": 2",
	 "excludes attention.sinks"},
	{buffered, "\"bias\": \"all\"", "\"bias\": \"all\", \"log_scale\": true",
	 "excludes attention.log_scale"},
	{buffered, "\"heads\": 2", "\"heads\": 3", "heads must divide width"},
	{decoupled, "\"pre\"", "\"post\"", "needs norm.placement \"pre\""},
	{decoupled, "\"kind\": \"attention\"", "\"kind\": \"gru\"", "unknown backbone.kind \"gru\""},
	{decoupled, "\"kind\": \"attention\"", "\"kind\": \"rnn\"", "feedforward belongs to"},
	{decoupled, "\"feedforward\": 8,", "", "backbone.kind \"attention\" needs feedforward"},
	{recurrent, "\"causal\"", "\"prefix-causal\"", "needs context \"causal\""},
	{recurrent, "\"kind\": \"lstm\"", "\"kind\": \"convolution\"",
	"needs context \"full\" and chain.buffer 1"},
	{recurrent, "\"bias\": \"all\"", "\"bias\": \"all\", \"kind\": \"linear\"",
	"needs attention.kind \"softmax\""},
	{decoupled, "\"bias\": \"all\"", "\"bias\": \"all\", \"kind\": \"exact\"",
	 "unknown attention.kind \"exact\""},
	{decoupled, "\"bias\": \"all\"", "\"bias\": \"all\", \"sinks\": 1",
	 "unknown configuration key \"attention.sinks\""},
	{decoupled, "\"x\": {\"kind\": \"linear\"}", "\"x\": {\"kind\": \"rows\"}",
	 "unknown embedder.x.kind \"rows\""},
	{decoupled, "\"decoupled\"", "\"packed\"", "unknown configuration key \"backbone\""},
	{decoupled, "{\"kind\": \"separate\", \"x\": {\"kind\": \"linear\"}, \"y\": {\"kind\": "
	 "\"mlp\", \"hidden\": [4]}}", "{\"kind\": \"concat\", \"hidden\": [4], \"flag\": false}",
	 "embedder.kind is not one that the architecture takes"},
	{scan, "\"query_width\": 12", "\"query_width\": 13", "heads must divide attention.query_width"},
	{scan, "\"basis\": 3", "\"basis\": 65", "\"attention.kernel.basis\" must be an integer"},
	{scan, "[[1], [0, 1]]", "[[1], [0, 2]]", "must be an integer from 0 to 1"},
	{scan, "[[1], [0, 1]]", "[[1], []]", "must be lists of together 1 to 64 columns"},
	{scan, "[[1], [0, 1]]", "[]", "must be 1 to 8 lists of columns"},
	{scan, "\"causal\": 0", "\"causal\": -1", "must be an integer from 0 to 1"},
	{scan, "\"bias\": \"all\"", "\"bias\": \"all\", \"sinks\": 1", "excludes attention.sinks"},
	{scan, "\"kind\": \"none\"", "\"kind\": \"skip-mlp\"", "unknown embedder.x.kind"},
	{scan, "\"bias\": \"all\"", "\"bias\": \"all\", \"kind\": \"deep\"", "unknown attention.kind"},
	{scan, "\"query_width\": 12", "\"features\": 4", "need attention.kind \"deep-kernel\" or"},
	{scan, "\"query_width\": 12", "\"kind\": \"random-features\", \"features\": 4",
	 "attention.kernel needs attention.kind \"softmax\""},
	{deep, "\"heads\": 1", "\"heads\": 2", "needs heads 1"},
	{deep, "\"features\": 6, ", "", "this attention.kind needs attention.features"},
	{deep, "\"features\": 6", "\"features\": 4097", "must be an integer from 1 to 4096"},
	{deep, "\"features\": 6", "\"features\": 6, \"value_width\": 4",
	 "attention.value_width must be width"},
	{deep, "\"features\": 6", "\"features\": 6, \"query_width\": 4",
	 "excludes attention.query_width"},
	{deep, "\"features\": 6", "\"features\": 6, \"sinks\": 1", "excludes attention.sinks"},
	{deep, "\"position\": false", "\"position\": 1", "must be true or false"},
	{deep, "\"min_rows\": 1", "\"min_rows\": 0", "min_rows must be at least 1"},
	{performer, "\"features\": 6", "\"features\": 6, \"hidden\": [4]",
	 "position need attention.kind \"deep-kernel\""},
	{performer, "\"features\": 6", "\"features\": 6, \"query_width\": 7",
	 "heads must divide attention.query_width"},
	{performer, "\"features\": 6", "\"features\": 6, \"log_scale\": true",
	 "excludes attention.log_scale"},
	{scan, "\"packed\"", "\"two-stream\"", "unknown configuration key \"attention.query_width\""},
	{latent, "\"kind\": \"gaussian\", \"hidden\": [], \"std\": \"exp\"",
	 "\"kind\": \"joint-gaussian\", \"hidden\": [], \"rank\": 0, \"layers\": 1, \"projector\": []",
	 "\"head.rank\" must be an integer from 1"},
	{decoupled, "\"kind\": \"gaussian\", \"hidden\": [], \"std\": \"exp\"",
	 "\"kind\": \"joint-gaussian\", \"hidden\": [], \"rank\": 3, \"layers\": 1, \"projector\": []",
	 "excludes head.kind \"joint-gaussian\""},
	{set, "\"full\",\"chain\": {\"buffer\": 3}", "\"causal\",\"chain\": {\"buffer\": null}",
	 "needs context \"full\""},
	{set, "\"y\": {\"kind\": \"linear\"}", "\"y\": {\"kind\": \"rows\"}",
	 "unknown embedder.y.kind \"rows\""},
	{set, "\"max_features\"", "\"features\"", "needs inputs.max_features"},
	{set, "9, \"scaling\": \"prefix\"", "9, \"scaling\": \"none\"",
	 "needs inputs.scaling \"prefix\" or \"power\""},
	{decoupled, "2, \"scaling\": \"none\"", "2, \"scaling\": \"power\"",
	 "needs the embedder \"set\""},
	{sums, "\"scaling\": \"prefix\"}", "\"scaling\": \"power\"}",
	 "needs the embedder \"set\""},
	{set, "\"width\": 8", "\"width\": 6", "width must be that of the read-outs"},
	{set, "\"all\", \"rotary\"", "\"first\", \"rotary\"",
	 "width must be that of the read-outs"},
	{set, "\"layers\": 1, \"heads\": 4", "\"layers\": 1, \"heads\": 3",
	 "embedder.columns.heads must divide embedder.columns.width"},
	{set, "\"rows\": {\"layers\": 1, \"heads\": 2", "\"rows\": {\"layers\": 1, \"heads\": 4",
	 "must be a multiple of twice embedder.rows.heads"},
	{set, "\"inducing\": 3", "\"inducing\": 0",
	 "\"embedder.columns.inducing\" must be an integer from 1 to 4096"},
	{set, "\"rotary\": 100", "\"rotary\": 0", "\"embedder.rows.rotary\" must be"},
	{set, "\"half\"", "\"both\"", "unknown embedder.rows.layout \"both\""},
	{set, ", \"inducing\": 3", "", "configuration key \"embedder.columns.inducing\" is missing"},
	{set, "{\"bias\": \"all\"}", "{\"bias\": \"all\", \"value_width\": 4}",
	 "embedder.kind is not one that the architecture takes"},
	{set, "\"scaling\": \"none\"}", "\"scaling\": \"classes\"}", "class"},
	{set, "\"kind\": \"gaussian\", \"hidden\": [], \"std\": \"exp\"",
	 "\"kind\": \"joint-gaussian\", \"hidden\": [], \"rank\": 3, \"layers\": 1, "
	 "\"projector\": []", "excludes head.kind \"joint-gaussian\""},
	{sums, "\"prefix-causal\"", "\"causal\"", "needs context \"prefix-causal\""},
	{sums, "\"waves\": 4", "\"waves\": 4, \"width\": 8", "unknown configuration key \"width\""},
	{sums, "\"linear\": true, ", "", "configuration key \"linear\" is missing"},
	{sums, "[1.0, 2.0]", "[]", "must be a list of 1 to 8 numbers above 0"},
	{sums, "[1.0, 2.0]", "[1.0, 0]", "\"lengths\" must be"},
	{sums, "\"points\": 3", "\"points\": 17", "\"points\" must be an integer from 1 to 16"},
	{sums, "\"matern\"", "\"flat\"", "unknown profile \"flat\""},
	{sums, "\"scaling\": \"prefix\"}, \"arch", "\"scaling\": \"prefix\", \"clip\": 3}, \"arch",
	 "excludes inputs.clip and target.clip"},
	{sums, "\"target\": {\"scaling\": \"prefix\"}", "\"target\": {\"scaling\": \"classes\"}",
	 "class"},
};

static TnpStatus
parse(const char *text, TnpConfig *config, TnpError *error)
{
	return tnp_config_parse(&tnp_default_env, text, strlen(text), config, error);
}

/* base with `from` replaced by `to`; freed by the caller. */
static char *
replace(const Refused *r)
{
	const char *at = strstr(r->base, r->from);
	char	   *text = malloc(strlen(r->base) + strlen(r->to) + 1);

	if (at == NULL || text == NULL)
		exit(2);
	sprintf(text, "%.*s%s%s", (int) (at - r->base), r->base, r->to, at + strlen(r->from));
	return text;
}

/* A full context of rows that do not see each other is appended to, while statistics stay. */
static void
test_lone_rows(void)
{
	static const struct
	{
		const char *layers,
				   *from,
				   *to;
		bool		appended;
	}			cases[] = {
		{"\"layers\": 1", "\"inputs\"", "\"inputs\"", true},
		{"\"layers\": 2", "\"inputs\"", "\"inputs\"", false},
		{"\"layers\": 1", "2, \"scaling\": \"none\"", "2, \"scaling\": \"prefix\"", false},
		{"\"layers\": 1", "\"target\": {\"scaling\": \"none\"}",
		"\"target\": {\"scaling\": \"prefix\"}", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		Refused		layers = {decoupled, "\"layers\": 2", cases[i].layers, NULL};
		char	   *base = replace(&layers);
		Refused		scaling = {base, cases[i].from, cases[i].to, NULL};
		char	   *text = replace(&scaling);
		TnpConfig	c;
		TnpError	error;

		is_int(parse(text, &c, &error), TNP_OK, cases[i].to);
		ok(c.family->appendable(&c) == cases[i].appended
		   && c.buffer == (cases[i].appended ? 0 : 1), "%s: rows are %sappended", cases[i].layers,
		   cases[i].appended ? "" : "not ");
		tnp_config_free(&tnp_default_env, &c);
		free(text);
		free(base);
	}
}

/* The prefix of a mean is what its statistics are of; without them there is none. */
static void
test_no_prefix(void)
{
	Refused		context = {mean, "\"causal\"", "\"prefix-causal\"", NULL};
	char	   *base = replace(&context);
	Refused		scaling = {base, "2, \"scaling\": \"none\"", "2, \"scaling\": \"prefix\"", NULL};
	char	   *scaled = replace(&scaling);
	Refused		rows = {scaled, "\"min_rows\": 0", "\"min_rows\": 2", NULL};
	char	   *text = replace(&rows);
	TnpConfig	c;
	TnpError	error;

	is_int(parse(base, &c, &error), TNP_OK, "a mean may be prefix-causal");
	is_int(c.context, TNP_CAUSAL, "and is causal where the prefix says nothing");
	tnp_config_free(&tnp_default_env, &c);
	is_int(parse(text, &c, &error), TNP_OK, "with statistics");
	is_int(c.context, TNP_PREFIX_CAUSAL, "the prefix stays");
	tnp_config_free(&tnp_default_env, &c);
	free(text);
	free(scaled);
	free(base);
}

int
main(void)
{
	TnpConfig	c;
	TnpError	error;

	is_int(parse(mean, &c, &error), TNP_OK, "a mean model is read");
	is_string(c.family->name, "mean", "its family");
	ok(c.layers == 0 && c.heads == 0 && c.min_rows == 0 && c.family->appendable(&c),
	   "it has no layers and can be appended to");
	tnp_config_free(&tnp_default_env, &c);
	is_int(parse(latent, &c, &error), TNP_OK, "a latent model is read");
	ok(strcmp(c.family->name, "latent") == 0 && c.buffer == 3 && !c.family->appendable(&c),
	   "its chains have a buffer, and it cannot be appended to");
	tnp_config_free(&tnp_default_env, &c);
	is_int(parse(buffered, &c, &error), TNP_OK, "a buffered model is read");
	ok(strcmp(c.family->name, "buffered") == 0 && c.buffer == 3 && !c.family->appendable(&c),
	   "its chains have a buffer of their own");
	tnp_config_free(&tnp_default_env, &c);
	is_int(parse(decoupled, &c, &error), TNP_OK, "a decoupled model is read");
	ok(strcmp(c.family->name, "decoupled") == 0 && c.embedder == TNP_SEPARATE
	   && c.encode_y.kind == TNP_ENCODE_MLP, "its encoders are separate");
	tnp_config_free(&tnp_default_env, &c);
	test_lone_rows();
	test_no_prefix();
	is_int(parse(recurrent, &c, &error), TNP_OK, "a decoupled model with a recurrence is read");
	ok(c.family->variant != NULL && c.family->appendable(&c), "rows can be appended to it");
	tnp_config_free(&tnp_default_env, &c);
	is_int(parse(scan, &c, &error), TNP_OK, "a packed model with a kernel is read");
	ok(strcmp(c.family->name, "packed") == 0 && c.family->variant != NULL
	   && c.embedder == TNP_PARTS && c.encode_y.width == 3, "it is a variant of the packed stack");
	tnp_config_free(&tnp_default_env, &c);
	is_int(parse(deep, &c, &error), TNP_OK, "a packed model with a deep kernel is read");
	ok(c.family->variant != NULL && !c.family->appendable(&c), "sums of all rows are its context");
	tnp_config_free(&tnp_default_env, &c);
	is_int(parse(performer, &c, &error), TNP_OK, "a causal model with random features is read");
	ok(c.family->variant != NULL && c.family->appendable(&c), "rows can be appended");
	tnp_config_free(&tnp_default_env, &c);
	is_int(parse(set, &c, &error), TNP_OK, "a packed model with a set encoder is read");
	ok(c.family->variant != NULL && c.embedder == TNP_SET && c.n_features == 0
	   && c.max_features == 9 && !c.family->appendable(&c), "its tokens are made of whole tables");
	ok(c.set.inducing == 3 && c.set.columns.heads == 4 && c.set.rows.heads == 2 && c.set.take_all
	   && c.set.halves && c.embedder_activation == TNP_RELU, "by stages of its own");
	tnp_config_free(&tnp_default_env, &c);
	is_int(parse(sums, &c, &error), TNP_OK, "a model of sums is read");
	ok(c.head == TNP_HEAD_MIXTURE && c.head_outputs == 6 && c.family->appendable(&c),
	   "its answers are mixtures over lengths and points");
	tnp_config_free(&tnp_default_env, &c);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
	{
		char	   *text = replace(&refused[i]);

		is_int(parse(text, &c, &error), TNP_BAD_CONFIG, refused[i].to);
		contains(error.message, refused[i].message, "and the message says why");
		free(text);
	}
	return done_testing();
}
