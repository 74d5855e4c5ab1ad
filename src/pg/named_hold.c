/*
 * named_hold.c: the encoding of a named context under the active snapshot.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "named_hold.h"

#include "bridge.h"

#include "utils/memutils.h"

/* Read the rows and find or make their encoding. */
static PosteriorEncoding *
by_content(PosteriorModel *model, const PosteriorNamed *named, bool fresh, bool publish)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "posterior rows", ALLOCSET_DEFAULT_SIZES);
	PosteriorContent content;
	PosteriorWanted wanted = {.model = model,.context = named->id,.classes = named->classes,.publish = publish,.grows = true};
	PosteriorOutcome outcome;
	PosteriorEncoding *e;

	posterior_named_read(named, false, memory, &content);
	wanted.rows = posterior_rows_view(content.rows, true);
	wanted.prefix = tnp_canonical_prefix(model->model, wanted.rows.n);
	e = fresh ? posterior_encoding_fresh(&wanted) : posterior_encoding_find(&wanted, &outcome);
	MemoryContextDelete(memory);
	return e;
}

PosteriorEncoding *
posterior_named_hold(PosteriorModel *model, const PosteriorNamed *named)
{
	bool		policies = posterior_named_policies(named);

	return by_content(model, named, posterior_cache_mode == POSTERIOR_CACHE_OFF, !policies);
}

PosteriorEncoding *
posterior_named_fresh(PosteriorModel *model, const PosteriorNamed *named)
{
	return by_content(model, named, true, false);
}
