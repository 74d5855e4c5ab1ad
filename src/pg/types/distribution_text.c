/*
 * distribution_text.c: text input and output of posterior.distribution.
 *
 *   normal(3.2, 0.5)
 *   mixture(0.3*normal(1, 0.2) + 0.7*normal(4, 1))
 *   bars(0 [0.2] 1 [0.8] 2.5)             borders outside the brackets, masses inside
 *   bars_half_normal(0 [0.2] 1 [0.8] 2.5)
 *   categorical("red": 0.2, "dark blue": 0.8)
 *   quantiles(0.5 [1, 2, 4] 0.7)          tails' scales outside the brackets, quantiles inside
 *
 * Numbers are printed in their shortest form that reads back to the same bits, whatever
 * extra_float_digits says, so text round-trips.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/distribution_summary.h"
#include "pg/types/distribution_value.h"

#include <math.h>

#include "common/shortest_dec.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"

#define MAX_COMPONENTS 65536

/* ---- output ---------------------------------------------------------------------------------- */

static void
append_number(StringInfo out, double v)
{
	char		text[DOUBLE_SHORTEST_DECIMAL_LEN];

	double_to_shortest_decimal_buf(v, text);
	appendStringInfoString(out, text);
}

static void
append_normal(StringInfo out, double mean, double sd)
{
	appendStringInfoString(out, "normal(");
	append_number(out, mean);
	appendStringInfoString(out, ", ");
	append_number(out, sd);
	appendStringInfoChar(out, ')');
}

static void
append_label(StringInfo out, const char *label)
{
	appendStringInfoChar(out, '"');
	for (; *label != '\0'; label++)
	{
		if (*label == '"' || *label == '\\')
			appendStringInfoChar(out, '\\');
		appendStringInfoChar(out, *label);
	}
	appendStringInfoChar(out, '"');
}

static void
append_distribution(StringInfo out, const PosteriorDistribution *d)
{
	const double *p = d->params;
	const char *label = posterior_labels(d);
	int			n = d->n;

	switch ((TnpDistributionKind) d->kind)
	{
		case TNP_GAUSSIAN:
			append_normal(out, p[0], p[1]);
			return;
		case TNP_MIXTURE:
			appendStringInfoString(out, "mixture(");
			for (int i = 0; i < n; i++)
			{
				if (i > 0)
					appendStringInfoString(out, " + ");
				append_number(out, p[i]);
				appendStringInfoChar(out, '*');
				append_normal(out, p[n + i], p[2 * n + i]);
			}
			break;
		case TNP_BARS:
		case TNP_BARS_HALF_NORMAL:
			appendStringInfoString(out, d->kind == TNP_BARS ? "bars(" : "bars_half_normal(");
			for (int i = 0; i < n; i++)
			{
				append_number(out, p[n + i]);
				appendStringInfoString(out, " [");
				append_number(out, p[i]);
				appendStringInfoString(out, "] ");
			}
			append_number(out, p[2 * n]);
			break;
		case TNP_CLASSES:
			appendStringInfoString(out, "categorical(");
			for (int i = 0; i < n; i++, label += strlen(label) + 1)
			{
				if (i > 0)
					appendStringInfoString(out, ", ");
				append_label(out, label);
				appendStringInfoString(out, ": ");
				append_number(out, p[i]);
			}
			break;
		case TNP_QUANTILES:
			appendStringInfoString(out, "quantiles(");
			append_number(out, p[n]);
			appendStringInfoString(out, " [");
			for (int i = 0; i < n; i++)
			{
				if (i > 0)
					appendStringInfoString(out, ", ");
				append_number(out, p[i]);
			}
			appendStringInfoString(out, "] ");
			append_number(out, p[n + 1]);
			break;
	}
	appendStringInfoChar(out, ')');
}

PG_FUNCTION_INFO_V1(posterior_distribution_out);
Datum
posterior_distribution_out(PG_FUNCTION_ARGS)
{
	StringInfoData out;

	initStringInfo(&out);
	if (posterior_is_summary_wanted())
		posterior_append_summary(&out, PG_GETARG_DISTRIBUTION(0));
	else
		append_distribution(&out, PG_GETARG_DISTRIBUTION(0));
	PG_RETURN_CSTRING(out.data);
}

/* ---- input ----------------------------------------------------------------------------------- */

typedef struct Reader
{
	const char *start,
			   *at;
	int			n,				/* components read */
				room;
	double	   *column[3];		/* one value per component each */
	StringInfoData labels;
} Reader;

static void
syntax_error(Reader *r, const char *expected)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("invalid input syntax for type posterior.distribution: \"%.*s\"",
					pg_mbcliplen(r->start, strlen(r->start), 60), r->start),
			 errdetail("Expected %s at character %d.", expected,
					   pg_mbstrlen_with_len(r->start, r->at - r->start) + 1),
			 errhint("Examples: normal(3.2, 0.5), mixture(0.3*normal(1, 0.2) + 0.7*normal(4, 1)), "
					 "bars(0 [0.2] 1 [0.8] 2.5), categorical(\"red\": 0.2, \"blue\": 0.8).")));
}

static void
skip_spaces(Reader *r)
{
	while (*r->at == ' ' || (*r->at >= '\t' && *r->at <= '\r'))
		r->at++;
}

/* Take the word or sign if it comes next. */
static bool
reader_accept(Reader *r, const char *word)
{
	size_t		length = strlen(word);

	skip_spaces(r);
	if (strncmp(r->at, word, length) != 0)
		return false;
	r->at += length;
	return true;
}

static void
reader_expect(Reader *r, const char *sign)
{
	if (!reader_accept(r, sign))
		syntax_error(r, psprintf("\"%s\"", sign));
}

static double
read_number(Reader *r)
{
	char	   *end;
	const char *digits;
	double		v;

	skip_spaces(r);
	digits = r->at + (*r->at == '+' || *r->at == '-');
	/* strtod also takes "nan", "inf" and hexadecimal, none of which is printed */
	if (*digits == '\0' || strchr(".0123456789", *digits) == NULL
		|| (digits[0] == '0' && (digits[1] | 0x20) == 'x'))
		syntax_error(r, "a number");
	v = strtod(r->at, &end);
	if (end == r->at || !isfinite(v))
		syntax_error(r, "a finite number");
	r->at = end;
	return v;
}

/* Make room for one more component. */
static void
next_component(Reader *r)
{
	if (r->n == r->room)
	{
		r->room = r->room > 0 ? 2 * r->room : 16;
		if (r->room > 2 * MAX_COMPONENTS)
			syntax_error(r, "no more than 65536 components");
		for (int i = 0; i < 3; i++)
			r->column[i] = r->column[i] == NULL ? palloc(r->room * sizeof(double))
												: repalloc(r->column[i], r->room * sizeof(double));
	}
	r->n++;
}

static void
read_normal(Reader *r, double weight)
{
	next_component(r);
	r->column[0][r->n - 1] = weight;
	reader_expect(r, "(");
	r->column[1][r->n - 1] = read_number(r);
	reader_expect(r, ",");
	r->column[2][r->n - 1] = read_number(r);
	reader_expect(r, ")");
}

static void
read_label(Reader *r)
{
	reader_expect(r, "\"");
	while (*r->at != '"')
	{
		if (*r->at == '\\')
			r->at++;
		if (*r->at == '\0')
			syntax_error(r, "the end of a label");
		appendStringInfoChar(&r->labels, *r->at++);
	}
	appendStringInfoChar(&r->labels, '\0');
	r->at++;
}

/* Nothing may follow; then check the parameters and make the value. */
static Datum
reader_finish(Reader *r, TnpDistributionKind kind, const double *params)
{
	skip_spaces(r);
	if (*r->at != '\0')
		syntax_error(r, "the end");
	PG_RETURN_POINTER(
		posterior_check_distribution(kind, r->n, params, r->labels.data, r->labels.len));
}

static Datum
read_mixture(Reader *r)
{
	double	   *params;

	reader_expect(r, "(");
	do
	{
		double		weight = read_number(r);

		reader_expect(r, "*");
		reader_expect(r, "normal");
		read_normal(r, weight);
	} while (reader_accept(r, "+"));
	reader_expect(r, ")");
	params = palloc(3 * r->n * sizeof(double));
	for (int i = 0; i < 3; i++)
		memcpy(params + i * r->n, r->column[i], r->n * sizeof(double));
	return reader_finish(r, TNP_MIXTURE, params);
}

static Datum
read_bars(Reader *r, TnpDistributionKind kind)
{
	double	   *params,
				border;

	reader_expect(r, "(");
	border = read_number(r);
	while (reader_accept(r, "["))
	{
		next_component(r);
		r->column[1][r->n - 1] = border;
		r->column[0][r->n - 1] = read_number(r);
		reader_expect(r, "]");
		border = read_number(r);
	}
	if (r->n == 0)
		syntax_error(r, "\"[\"");
	reader_expect(r, ")");
	params = palloc((2 * r->n + 1) * sizeof(double));
	memcpy(params, r->column[0], r->n * sizeof(double));
	memcpy(params + r->n, r->column[1], r->n * sizeof(double));
	params[2 * r->n] = border;
	return reader_finish(r, kind, params);
}

static Datum
read_categorical(Reader *r)
{
	reader_expect(r, "(");
	do
	{
		read_label(r);
		reader_expect(r, ":");
		next_component(r);
		r->column[0][r->n - 1] = read_number(r);
	} while (reader_accept(r, ","));
	reader_expect(r, ")");
	return reader_finish(r, TNP_CLASSES, r->column[0]);
}

static Datum
read_quantiles(Reader *r)
{
	double	   *params,
				left;

	reader_expect(r, "(");
	left = read_number(r);
	reader_expect(r, "[");
	do
	{
		double		quantile = read_number(r);

		next_component(r);
		r->column[0][r->n - 1] = quantile;
	} while (reader_accept(r, ","));
	reader_expect(r, "]");
	params = palloc((r->n + 2) * sizeof(double));
	memcpy(params, r->column[0], r->n * sizeof(double));
	params[r->n] = left;
	params[r->n + 1] = read_number(r);
	reader_expect(r, ")");
	return reader_finish(r, TNP_QUANTILES, params);
}

PG_FUNCTION_INFO_V1(posterior_distribution_in);
Datum
posterior_distribution_in(PG_FUNCTION_ARGS)
{
	Reader		r = {.start = PG_GETARG_CSTRING(0)};

	r.at = r.start;
	initStringInfo(&r.labels);
	if (reader_accept(&r, "normal"))
	{
		double		params[2];

		read_normal(&r, 1);
		params[0] = r.column[1][0];
		params[1] = r.column[2][0];
		return reader_finish(&r, TNP_GAUSSIAN, params);
	}
	if (reader_accept(&r, "mixture"))
		return read_mixture(&r);
	if (reader_accept(&r, "bars_half_normal"))
		return read_bars(&r, TNP_BARS_HALF_NORMAL);
	if (reader_accept(&r, "bars"))
		return read_bars(&r, TNP_BARS);
	if (reader_accept(&r, "categorical"))
		return read_categorical(&r);
	if (reader_accept(&r, "quantiles"))
		return read_quantiles(&r);
	if (posterior_is_summary(r.start))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("a summary of a distribution cannot be read back"),
				 errdetail("It begins with \"%.*s\".",
						   pg_mbcliplen(r.start, strlen(r.start), 60), r.start),
				 errhint("Take the value from a session with posterior.distribution_style = full, "
						 "or cast it there to text or jsonb.")));
	syntax_error(&r, "normal, mixture, bars, bars_half_normal, categorical or quantiles");
	PG_RETURN_NULL();
}
