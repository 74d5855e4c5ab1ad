/*
 * definition.h: named contexts: what one is made of, and the rows that a snapshot shows of it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_DEFINITION_H
#define POSTERIOR_DEFINITION_H

#include "pg/named/definition_rights.h"
#include "pg/models/model_cache.h"
#include "pg/visibility/snapshot_mark.h"
#include "pg/rows/rows.h"

#include "access/attnum.h"
#include "executor/spi.h"

typedef enum PosteriorRowSecurity
{
	POSTERIOR_ROW_SECURITY_REFUSE,
	POSTERIOR_ROW_SECURITY_PRIVATE
} PosteriorRowSecurity;

extern int	posterior_row_security; /* posterior.row_security */

/* A row of posterior.context_definition, resolved against the catalogs. */
typedef struct PosteriorNamed
{
	MemoryContext memory;
	char		name[NAMEDATALEN];
	pg_uuid_t	id;				/* of the context, for incarnation */
	/* of this definition: another one after alter_context and refresh_context */
	pg_uuid_t	version;
	Oid			owner;
	Oid			relation;
	char		model[NAMEDATALEN];
	bool		maintained;		/* triggers note writes to the relation */
	/*
	 * of a context that keeps sums (kept_sums.h): what its triggers note rows under, the basis of
	 * the sums, and the fit of their model; basis and fit are NULL where it has none yet
	 */
	bool		keeps;
	pg_uuid_t	kept;
	struct PosteriorContext *basis;
	bytea	   *fit;
	bool		filtered;		/* not all rows with all targets belong to it */
	/*
	 * rows depend on what is written to the relation alone: no enum, whose labels can be renamed,
	 * and no attributes, which can be dropped
	 */
	bool		stable;
	int64		max_rows;		/* 0: all */
	int			estimators;		/* 0: posterior.estimators */
	int			neighbours;		/* rows near to it that a question is answered from; 0: all */
	bool		bounded;		/* its freshness: rows may wait for the next boundary */
	/* rows, with those before the window, that were there at the last refresh; 0: none */
	int64		refreshed_rows;
	int			n_targets;		/* columns; a single one can be an array of several targets */
	AttrNumber *targets;		/* [n_targets] */
	Oid		   *target_types;	/* [n_targets] numbers, if they are several */
	int			n_features;
	AttrNumber *features;		/* [n_features] */
	char	  **names;			/* [n_features] */
	Oid		   *types;			/* [n_features] */
	uint8	   *kinds;		/* [n_features] PosteriorColumnKind */
	char	   *columns;		/* targets, features …: what queries select */
	char	   *source;			/* FROM … WHERE …: the rows with all targets that pass the filter */
	char	   *condition;		/* the part of it after the relation */
	Datum		filter;			/* posterior.row_filter, where it is filtered */
	char	   *order;			/* ORDER BY …: the canonical order */
	char	   *backwards;		/* ORDER BY …: that order from its end */
	char	   *used;			/* the columns that `order` and the rows need, each once */
} PosteriorNamed;

/*
 * The context of this name as the active snapshot shows it, in `memory`. Raises 42704 when there is
 * none, 42501 unless the current user owns it or may read a column of its relation, and clear
 * errors when its relation or a column of it is gone.
 */
PosteriorNamed *posterior_named_find(const char *name, MemoryContext memory);

/*
 * The context that keeps sums under this identity, whatever the transaction's snapshot shows and
 * the current user may see; NULL if none does.
 */
PosteriorNamed *posterior_named_of_kept(const pg_uuid_t *kept, MemoryContext memory);

/* Its relation, which may be gone; 0 if no context keeps sums under this identity. */
Oid			posterior_relation_of_kept(const pg_uuid_t *kept);

/*
 * Whether row-level security applies to the current user: then answers are computed for this user
 * alone. Raises if posterior.row_security = refuse forbids that.
 */
bool		posterior_named_policies(const PosteriorNamed *named);

/*
 * Whether the current user is answered from the sums that the context keeps. Where row-level
 * security applies the rows are read: basis and fit are of all rows, and would tell of them.
 */
bool		posterior_named_by_sums(const PosteriorNamed *named);

/*
 * Whether the current user may surely read every column of the relation; if not, reading will tell.
 */
bool		posterior_named_readable(const PosteriorNamed *named);

/* The same of the columns that the context uses; a filter may use any. */
bool		posterior_named_columns_readable(const PosteriorNamed *named);

/*
 * The model of a context, for rows of as many targets as it has columns of them; it stays until
 * `owner` is reset or deleted.
 */
PosteriorModel *posterior_named_model(const PosteriorNamed *named, MemoryContext owner);

/* Raise unless a model can predict the targets: numbers, so many of them, or labels. */
void		posterior_named_check_target(const PosteriorNamed *named, const TnpModel *model);

/* Rows of a named context. */
typedef struct PosteriorContent
{
	PosteriorRows *rows;		/* in canonical order, from the window's start */
	int64		total;			/* with those before the window, and those that wait */
	/* where the last row of the context lies, those that wait left out; invalid if unknown */
	ItemPointerData last;
	/*
	 * rows before those of the reader's own transaction, if these come last and bring no label; -1
	 * if that is not so, or unknown
	 */
	int64		others;
	ItemPointerData last_of_others;
} PosteriorContent;

/*
 * The rows that the active snapshot shows, in canonical order, in `memory`; read with the rights of
 * the current user, as many as the model's limit allows: raises as soon as there are more. Labels
 * are settled. plain: rows have places, and those of the reader's own transaction are at these.
 */
void		posterior_named_read(const PosteriorNamed *named, const PosteriorModel *model,
								 bool plain, const PosteriorNewRows *own, MemoryContext memory,
								 PosteriorContent *content);

/*
 * Add the rows that the active snapshot shows to sums, read with the rights of the current user: in
 * no order, and in memory that does not grow with them.
 */
void		posterior_named_read_sums(const PosteriorNamed *named, const PosteriorModel *model,
									  TnpSums *sums);

/*
 * A sample of about `most` of these rows, in canonical order, in `memory`: all of them where there
 * are no more, as far as the planner's statistics know.
 */
PosteriorRows *posterior_named_sample(const PosteriorNamed *named, const PosteriorModel *model,
									  int64 most, MemoryContext memory);

/* A number as its cast to float8; infinite, where the cast would raise that it is too large. */
double		posterior_number_of_value(Oid base, Datum value);

/*
 * Those of the rows at these places that the active snapshot shows, in canonical order, each
 * checked to have the xmin that was noted. False unless the row at `last` comes first: it is then
 * left out. labels are those of the classes, whose order stays: a row with another one is no new
 * row; or NULL. waiting: they are counted in `content->total`, nothing else is looked at, and
 * `content->last` is `last`.
 */
bool posterior_named_read_new(const PosteriorNamed *named, const TnpModel *model,
							  const PosteriorLabelList *labels, ItemPointerData last, int n,
							  const ItemPointerData *places, const TransactionId *xmins,
							  bool waiting, MemoryContext memory,
							  PosteriorContent *content);

/* Rows before the window of a context with this many rows. */
int64		posterior_named_start(const PosteriorNamed *named, int64 total);

/*
 * Whether rows wait: its freshness is bounded, and the model encodes all rows anew when one is
 * added. With a model that appends rows none wait, since each costs itself only.
 */
bool		posterior_named_waits(const PosteriorNamed *named, const TnpModel *model);

/*
 * How many rows of the window, from its start, are the context where there are `total` rows: all of
 * them, or where rows wait those up to the last boundary (a power of two and the quarters to the
 * next one), or as many as the last refresh found where these are more. Like the prefix a function
 * of the rows and the definition that a snapshot shows, and of nothing else.
 */
int64		posterior_named_rows(const PosteriorNamed *named, const TnpModel *model, int64 total);

/*
 * The end of the prefix among these: the canonical one, or as many rows as the last refresh found
 * where these are more and so many are there.
 */
int64		posterior_named_prefix(const PosteriorNamed *named, const TnpModel *model, int64 total);

/* The number of rows without a window, read with the rights of the current user. */
int64		posterior_named_count(const PosteriorNamed *named);

/*
 * Whether there are more rows than `most`, without a window; looks at no more of them than that
 * takes. False for a view or a foreign table, whose rows cost too much to be counted first.
 */
bool		posterior_named_exceeds(const PosteriorNamed *named, int64 most);

/* The fewest rows that the window has while there are more rows than it takes. */
int64		posterior_named_least(const PosteriorNamed *named);

#endif							/* POSTERIOR_DEFINITION_H */
