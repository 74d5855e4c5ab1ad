-- pg_posterior 1.0 to 1.1: complain if this script is sourced in psql rather than by ALTER
-- EXTENSION
\echo Use "ALTER EXTENSION pg_posterior UPDATE TO '1.1'" to load this file. \quit

-- What is new in 1.1 lies in parts/, which the install script includes, too.

\ir parts/schema.sql
\ir parts/label_probability.sql
COMMENT ON FUNCTION posterior.probability(d posterior.distribution, label text)
	IS 'probability of a label; NULL for what is no label of the distribution';
COMMENT ON FUNCTION posterior.predict(posterior.context, VARIADIC "any")
	IS 'predictive distribution of the target of a row with these features, which may be one jsonb '
		'array';
COMMENT ON FUNCTION posterior.predict(name, anyelement)
	IS 'predictive distribution of the target of a row, which may be a jsonb, given a named '
		'context; columns are matched by name';
COMMENT ON FUNCTION posterior.progress()
	IS 'what backends are reading, encoding and answering, as far as the user may see it; the '
		'view posterior.stat_progress shows it';
COMMENT ON FUNCTION posterior.load_model(text, text)
	IS 'load a model from a file of the server; needs EXECUTE, INSERT on posterior.model_file and '
		'pg_read_server_files';
COMMENT ON FUNCTION posterior.load_model(text, bytea)
	IS 'load a model from the bytes of its file; needs EXECUTE and INSERT on posterior.model_file';
COMMENT ON FUNCTION posterior.drop_model(text)
	IS 'forget a model; needs EXECUTE and DELETE on posterior.model_file';

-- what a model's weights are kept under: adding a model must not replace one
ALTER TABLE posterior.model_file ADD UNIQUE (version);
ALTER TABLE posterior.context_definition ADD UNIQUE (id);
REVOKE SELECT ON posterior.context_definition FROM PUBLIC;
\ir parts/definition_rights.sql
DROP FUNCTION posterior.create_context(text, regclass, text, text[], text, text, integer, text,
	text);
DROP FUNCTION posterior.alter_context(text, regclass, text, text[], text, text, integer, text, text,
	text);
\ir parts/context_arguments.sql

-- posterior.context_state returns a set now, which only a new function can. Views of users may
-- depend on the view of its counters, which therefore stays and does without the function for the
-- moment.
CREATE OR REPLACE VIEW posterior.stat_contexts AS
	SELECT name, relation::pg_catalog.regclass AS relation, 0::bigint AS skips, 0::bigint AS deltas,
		0::bigint AS reads,
		0::bigint AS extensions, 0::bigint AS rebuilds, 0::bigint AS private, 0::bigint AS rows,
			0::bigint AS prefix_rows,
		0::bigint AS suffix_rows, 0::bigint AS bytes, 0::float8 AS drift
	FROM posterior.context_definition;
DROP FUNCTION posterior.context_state(uuid);
\ir parts/context_views.sql
\ir parts/column_comments.sql

\ir parts/decisions.sql
\ir parts/verb_common.sql
\ir parts/row_order.sql
\ir parts/model_behaviour.sql
\ir parts/label_context.sql
\ir parts/calendar.sql
\ir parts/series.sql
\ir parts/forecast.sql
\ir parts/evaluate.sql
\ir parts/answers.sql
\ir parts/plot.sql
\ir parts/quantiles.sql
\ir parts/joint.sql
\ir parts/context_estimators.sql
\ir parts/habits.sql
\ir parts/sums.sql
\ir parts/kept_sums.sql
\ir parts/replication.sql
\ir parts/targets.sql
\ir parts/costs.sql
\ir parts/internals.sql
