/*
 * distribution_json.c: a distribution as a JSON object, which posterior.from_jsonb reads again.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/distribution_value.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/json.h"

/* "name": [n numbers from params on] */
static void
append_numbers(StringInfo text, const char *name, int n, const double *params)
{
	appendStringInfo(text, ", \"%s\": [", name);
	for (int i = 0; i < n; i++)
	{
		char	   *number = float8out_internal(params[i]);

		appendStringInfo(text, "%s%s", i > 0 ? ", " : "", number);
		pfree(number);
	}
	appendStringInfoChar(text, ']');
}

static void
append_number(StringInfo text, const char *name, double value)
{
	char	   *number = float8out_internal(value);

	appendStringInfo(text, ", \"%s\": %s", name, number);
	pfree(number);
}

static void
append_labels(StringInfo text, const PosteriorDistribution *d)
{
	const char *label = posterior_labels(d);

	appendStringInfoString(text, ", \"labels\": [");
	for (int i = 0; i < d->n; i++, label += strlen(label) + 1)
	{
		if (i > 0)
			appendStringInfoString(text, ", ");
		escape_json(text, label);
	}
	appendStringInfoChar(text, ']');
}

PG_FUNCTION_INFO_V1(posterior_distribution_json);
Datum
posterior_distribution_json(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"",		"normal",			"mixture",
										"bars", "bars_half_normal", "categorical", "quantiles"};
	PosteriorDistribution *d = PG_GETARG_DISTRIBUTION(0);
	int			extra_float_digits_before = extra_float_digits;
	StringInfoData text;

	/* digits that read back as this number, whatever extra_float_digits is */
	extra_float_digits = 1;
	initStringInfo(&text);
	appendStringInfo(&text, "{\"kind\": \"%s\"", names[d->kind]);
	switch ((TnpDistributionKind) d->kind)
	{
		case TNP_GAUSSIAN:
			append_number(&text, "mean", d->params[0]);
			append_number(&text, "sd", d->params[1]);
			break;
		case TNP_MIXTURE:
			append_numbers(&text, "weights", d->n, d->params);
			append_numbers(&text, "means", d->n, d->params + d->n);
			append_numbers(&text, "sds", d->n, d->params + 2 * d->n);
			break;
		case TNP_BARS:
		case TNP_BARS_HALF_NORMAL:
			append_numbers(&text, "masses", d->n, d->params);
			append_numbers(&text, "borders", d->n + 1, d->params + d->n);
			break;
		case TNP_CLASSES:
			append_labels(&text, d);
			append_numbers(&text, "probabilities", d->n, d->params);
			break;
		case TNP_QUANTILES:
			append_numbers(&text, "quantiles", d->n, d->params);
			append_number(&text, "lower_tail", d->params[d->n]);
			append_number(&text, "upper_tail", d->params[d->n + 1]);
			break;
	}
	appendStringInfoChar(&text, '}');
	extra_float_digits = extra_float_digits_before;
	PG_RETURN_TEXT_P(cstring_to_text_with_len(text.data, text.len));
}
