/*
 * distribution_summary.c: the short text of a distribution, for display.
 *
 *   mean 3.20, sd 0.50, 90 % in [2.38, 4.02]
 *   "red" 0.80, "dark blue" 0.15, 2 others 0.05
 *
 * It cannot be read back. So it is written only where a value goes to a client as text, and only in
 * a session that asked for it with SET: casts, COPY, JSON and dumps are exact always.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/distribution_summary.h"

#include <math.h>

#include "utils/guc.h"
#include "utils/memutils.h"

#define SHOWN_LABELS 3

typedef enum Style { STYLE_FULL, STYLE_SUMMARY } Style;

static int	style = STYLE_FULL;

static const struct config_enum_entry styles[] = {
	{"full", STYLE_FULL, false},
	{"summary", STYLE_SUMMARY, false},
	{NULL, 0, false}
};

/*
 * A dump sets nothing of this extension, so a value from anywhere but the session's own SET could
 * shorten what it writes.
 */
static bool
check_style(int *value, void **extra, GucSource source)
{
	if (*value == STYLE_FULL || source >= PGC_S_SESSION)
		return true;
	GUC_check_errdetail(
		"A summary cannot be read back, so only a session can ask for it, with SET.");
	GUC_check_errhint("Put SET posterior.distribution_style = summary into the start of the "
					  "client, as in .psqlrc.");
	return false;
}

void
posterior_summary_register(void)
{
	DefineCustomEnumVariable(
		"posterior.distribution_style",
		"Text of distributions that clients get: full, or a summary "
							 "for reading.",
		"full can be read back. Casts, COPY, JSON and binary output are "
							 "full always.", &style,
		STYLE_FULL, styles, PGC_USERSET, GUC_NOT_IN_SAMPLE, check_style, NULL, NULL);
}

/*
 * Whether the value is on its way to the client: printtup() runs output functions in a memory
 * context of this name, which nothing else uses. Arrays and rows of distributions call this output
 * function from theirs, in the same one.
 */
bool
posterior_is_summary_wanted(void)
{
	return style == STYLE_SUMMARY && strcmp(CurrentMemoryContext->name, "printtup") == 0;
}

/* Three significant digits of the standard deviation, and as many decimals of everything else. */
static void
append_rounded(StringInfo out, double value, double sd)
{
	double		exponent = sd > 0 ? floor(log10(sd)) : -3;

	if (exponent >= -9 && exponent <= 14 && fabs(value) < 1e15)
		appendStringInfo(out, "%.*f", exponent < 2 ? (int) (2 - exponent) : 0, value);
	else
		appendStringInfo(out, "%.6g", value);
}

static void
append_labels(StringInfo out, const PosteriorDistribution *d)
{
	const char **labels = palloc(d->n * sizeof(char *));
	bool	   *shown = palloc0(d->n * sizeof(bool));
	double		rest = 1;
	const char *label = posterior_labels(d);

	for (int i = 0; i < d->n; i++, label += strlen(label) + 1)
		labels[i] = label;
	for (int k = 0; k < Min(SHOWN_LABELS, d->n); k++)
	{
		int			best = -1;

		for (int i = 0; i < d->n; i++)
			if (!shown[i] && (best < 0 || d->params[i] > d->params[best]))
				best = i;
		shown[best] = true;
		rest -= d->params[best];
		appendStringInfo(out, "%s\"%s\" %.3f", k > 0 ? ", " : "", labels[best], d->params[best]);
	}
	if (d->n > SHOWN_LABELS)
		appendStringInfo(out, ", %d %s %.3f", d->n - SHOWN_LABELS,
						 d->n > SHOWN_LABELS + 1 ? "others" : "other", Max(rest, 0));
}

void
posterior_append_summary(StringInfo out, const PosteriorDistribution *d)
{
	TnpDistribution view = posterior_view(d);
	double		sd;

	if (d->kind == TNP_CLASSES)
	{
		append_labels(out, d);
		return;
	}
	sd = sqrt(tnp_variance(&view));
	appendStringInfoString(out, "mean ");
	append_rounded(out, tnp_mean(&view), sd);
	appendStringInfoString(out, ", sd ");
	append_rounded(out, sd, sd);
	appendStringInfoString(out, ", 90 % in [");
	append_rounded(out, tnp_quantile(&view, 0.05), sd);
	appendStringInfoString(out, ", ");
	append_rounded(out, tnp_quantile(&view, 0.95), sd);
	appendStringInfoChar(out, ']');
}

bool
posterior_is_summary(const char *text)
{
	while (*text == ' ')
		text++;
	return strncmp(text, "mean ", 5) == 0 || (*text == '"' && strstr(text, "\" 0.") != NULL);
}
