-- reference.sql: writes docs/sql.md from the catalogue, for test/check_reference.
--
-- Functions are grouped by the table `topic`; what it does not name appears under "Others", which
-- the check refuses.
--
-- SPDX-License-Identifier: PostgreSQL

LOAD 'pg_posterior';

CREATE TEMPORARY TABLE topic (place integer, title text, about text, names text[]);
INSERT INTO topic VALUES
	(1, 'Frames', 'Window functions: the rows of the frame are the context, the current row is the '
		'query.',
		'{regress,classify}'),
	(2, 'Context values',
			'Aggregates that make a value of rows, and what such a value says about itself.',
		'{context,class_context,rows,features,labels,basis,merge,without,estimators,'
		'with_estimators,targets}'),
	(3, 'Predictions',
		'A context is a value or the name of a named context. With a name, `row` is a row of any '
		'type whose
columns have the names of the features, or a `jsonb` object; with a value, features follow in the
order of the context.',
		'{predict,predict_targets,predict_rows,predict_summary}'),
	(4, 'Joint draws and densities', 'Of several rows together. Labels are `text`.',
		'{sample,sample_labels,sample_targets,joint,log_density,log_density_averaged,'
		'log_evidence}'),
	(5, 'Named contexts', '[contexts.md](contexts.md) explains the arguments.',
		'{create_context,alter_context,drop_context,refresh_context,warm_context,'
		'sums,column_name,condition}'),
	(6, 'Distributions', NULL,
		'{mean,stddev,variance,median,mode,entropy,quantile,bounds,pdf,log_pdf,cdf,crps,draw,kind,'
		'probability,most_probable,probabilities,to_json,to_jsonb,from_jsonb}'),
	(7, 'Distributions made by hand', NULL, '{normal,mixture,bars,from_quantiles,categorical}'),
	(8, 'Decisions', '[verbs.md](verbs.md#decisions) says what each computes.',
		'{surprise,expected_excess,expected_improvement,probability_of_improvement,'
		'upper_confidence_bound,affine,pool}'),
	(9, 'Series', '[verbs.md](verbs.md#forecasts) says what each computes.',
			'{forecast,forecast_total,backtest,calendar}'),
	(10, 'Relations', '[verbs.md](verbs.md#tables) says what each computes.',
			'{evaluate,detect_anomalies,impute,importance}'),
	(11, 'Named contexts at work', '[verbs.md](verbs.md#named-contexts) says what each computes.',
		'{score,contrast,suggest,order_gap,watch,unwatch}'),
	(12, 'Pictures', '[verbs.md](verbs.md#pictures) shows them.',
			'{plot,plot_text,plot_histogram}'),
	(30, 'Models', '[models.md](models.md) lists those that come with the extension.',
			'{load_model,drop_model}'),
	(31, 'Statistics', 'The views below show the rest.',
		'{stat_cache,stat_reset,kernels}'),
	(32, 'Trigger functions', '`posterior.create_context` makes the triggers.',
		'{note_statement,note_insert,note_change,note_sums}');

-- Functions that statements call: not those that types, aggregates, operators and operator classes
-- are made of.
CREATE TEMPORARY VIEW callable AS
	SELECT p.* FROM pg_proc p
	WHERE pronamespace = 'posterior'::regnamespace
		AND NOT EXISTS (SELECT FROM pg_type t
				WHERE p.oid IN (typinput, typoutput, typreceive, typsend))
		AND NOT EXISTS (SELECT FROM pg_aggregate a
			WHERE p.oid IN (aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn))
		AND NOT EXISTS (SELECT FROM pg_operator o WHERE p.oid = oprcode)
		AND NOT EXISTS (SELECT FROM pg_amproc a WHERE p.oid = amproc)
		AND NOT EXISTS (SELECT FROM pg_type t
			WHERE typtype IN ('r', 'm') AND typname = proname AND typnamespace = pronamespace);

-- A type without the schema that everything here lies in, and the comment of a table's cell.
CREATE FUNCTION pg_temp.type(oid) RETURNS text LANGUAGE sql AS
$$ SELECT replace(replace(format_type($1, NULL), 'posterior.', ''), 'timestamp with time zone',
		'timestamptz') $$;
CREATE FUNCTION pg_temp.cell(text) RETURNS text LANGUAGE sql AS $$ SELECT replace($1, '|', '\|') $$;

-- Every callable function as it is called, and what it returns.
CREATE TEMPORARY VIEW signature AS
	SELECT proname AS name, obj_description(c.oid, 'pg_proc') AS comment, a.place,
		format('%s(%s)%s', proname, a.arguments, CASE prokind WHEN 'w' THEN ' OVER (…)'
				ELSE '' END) AS call,
		CASE WHEN proretset THEN 'set of ' ELSE '' END
			|| coalesce('(' || a.columns || ')', pg_temp.type(prorettype)) AS returns,
		CASE prokind WHEN 'a' THEN 'aggregate: ' ELSE '' END AS kind
	FROM callable c, LATERAL (
		SELECT string_agg(concat_ws(' ', CASE mode WHEN 'v' THEN 'VARIADIC' END,
					quote_ident(argument), type)
				|| coalesce(' DEFAULT '
						|| regexp_replace(pg_get_function_arg_default(c.oid, i::integer),
							'::[a-z \[\]]+$', ''), ''),
				', ' ORDER BY i) FILTER (WHERE mode IN ('i', 'v')) AS arguments,
			string_agg(concat_ws(' ', quote_ident(argument), type), ', ' ORDER BY i)
				FILTER (WHERE mode = 'o') AS columns,
			string_agg(concat_ws(' ', argument, type), ', ' ORDER BY i) AS place
		FROM (SELECT i, coalesce(proargmodes[i], 'i') AS mode,
				nullif(proargnames[i], '') AS argument,
				pg_temp.type(coalesce(proallargtypes[i], proargtypes[i - 1])) AS type
			FROM generate_series(1,
					coalesce(cardinality(proallargtypes), pronargs::integer)) i) u) a;

SELECT '# SQL reference

Written from the catalogue and its comments by `test/check_reference --write`; `make docs` fails
where it is out of date. Everything lies in the schema `posterior`, which is left out below. The
target comes first, as in `regr_slope(Y, X)`. [tour.md](tour.md) shows the functions at work,
[guarantees.md](guarantees.md) says what holds for all of them.

The rows of `rows anyarray` are composite values with the feature columns in the order of the
context, as `array_agg(r)` of a subquery makes them, or `jsonb`; [clients.md](clients.md) is about
parameters without types.';

SELECT format(E'\n## %s\n\n%s| function | returns | |\n|---|---|---|\n', title,
		coalesce(about || E'\n\n', ''))
	|| string_agg(format('| `%s` | %s`%s` | %s |', pg_temp.cell(call), kind, pg_temp.cell(returns),
				pg_temp.cell(comment)), E'\n'
		ORDER BY array_position(names, name::text), name COLLATE "C", signature.place COLLATE "C")
FROM (SELECT * FROM topic UNION ALL SELECT 99, 'Others', NULL, ARRAY(SELECT name FROM signature
		WHERE NOT EXISTS (SELECT FROM topic WHERE name = ANY (names)) ORDER BY name COLLATE "C")) t
	JOIN signature ON name = ANY (names)
GROUP BY t.place, title, about, names ORDER BY t.place;

SELECT E'\n## Types\n\n| type | |\n|---|---|\n'
	|| string_agg(format('| `%s` | %s |', typname, pg_temp.cell(obj_description(oid, 'pg_type'))),
	E'\n' ORDER BY typname COLLATE "C")
FROM pg_type WHERE typnamespace = 'posterior'::regnamespace AND typtype IN ('b', 'r')
	AND typcategory <> 'A';

\echo
\echo '## Views'
SELECT E'\n| view | |\n|---|---|\n'
	|| string_agg(format('| [%s](#view-posterior%s) | %s |', relname, relname,
	pg_temp.cell(obj_description(oid, 'pg_class'))), E'\n' ORDER BY relname COLLATE "C")
FROM pg_class WHERE relnamespace = 'posterior'::regnamespace AND relkind = 'v';
SELECT format(E'\n### View posterior.%s\n\n| column | type | |\n|---|---|---|\n', relname)
	|| string_agg(format('| `%s` | `%s` | %s |', attname, pg_temp.type(atttypid),
				pg_temp.cell(col_description(v.oid, attnum))),
		E'\n' ORDER BY attnum)
FROM pg_class v JOIN pg_attribute ON attrelid = v.oid AND attnum > 0
WHERE relnamespace = 'posterior'::regnamespace AND relkind = 'v'
GROUP BY v.oid, relname ORDER BY relname COLLATE "C";

\echo
\echo '## Settings'
\echo
\echo '"Session" settings are changed by SET, "reload" ones in postgresql.conf, "restart" ones'
\echo 'there and with a restart of the server.'
\echo
SELECT E'| setting | default | values | changed by | |\n|---|---|---|---|---|\n'
	|| string_agg(format('| `%s` | %s | %s | %s | %s |', name,
	coalesce('`' || nullif(current_setting(name), '') || '`', 'empty'),
	CASE vartype WHEN 'enum' THEN '`' || array_to_string(enumvals, '`, `') || '`'
		WHEN 'string' THEN 'text'
		ELSE concat(min_val, ' … ', max_val, ' ' || unit) END,
	CASE WHEN name = 'posterior.cache_size' THEN 'restart where preloaded, else session'
		ELSE CASE context WHEN 'user' THEN 'session' WHEN 'superuser' THEN 'session, superuser'
		WHEN 'sighup' THEN 'reload'
		WHEN 'postmaster' THEN 'restart' ELSE context END END,
	pg_temp.cell(concat_ws(' ', short_desc, extra_desc))), E'\n' ORDER BY name COLLATE "C")
FROM pg_settings WHERE name LIKE 'posterior.%';
