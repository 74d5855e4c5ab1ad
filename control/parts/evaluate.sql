-- ---- evaluate, detect_anomalies, impute, importance ---------------------------------------------

-- Columns that tell a row: the primary key, else those given.
CREATE FUNCTION posterior_internal.key_columns(relation regclass, key text[],
	fallback text[]) RETURNS text[]
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	name text;
BEGIN
	FOREACH name IN ARRAY coalesce(key, '{}') LOOP
		PERFORM posterior_internal.check_column(relation, name, 'key');
	END LOOP;
	RETURN coalesce(nullif(key, '{}'), (SELECT array_agg(a.attname::text
		ORDER BY array_position(i.indkey::smallint[], a.attnum))
		FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
			WHERE i.indrelid = relation AND i.indisprimary), fallback);
END $$;
COMMENT ON FUNCTION posterior_internal.key_columns(regclass, text[],
	text[]) IS 'columns that tell one row from another';

-- Whether a target is a number (else a label); an error where it can be neither.
CREATE FUNCTION posterior_internal.target_is_number(relation regclass, target text) RETURNS boolean
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	type regtype := posterior_internal.check_column(relation, target, 'target');
	base regtype := posterior_internal.base_type(type);
BEGIN
	IF posterior_internal.is_number(type) THEN
		RETURN true;
	ELSIF base IN ('text'::regtype, 'varchar', 'bpchar', 'boolean') OR EXISTS (SELECT FROM pg_type t
		WHERE t.oid = base AND t.typtype = 'e') THEN
		RETURN false;
	END IF;
	RAISE EXCEPTION 'column "%" cannot be a target', target
		USING ERRCODE = 'datatype_mismatch', DETAIL = format('Its type is %s.', type),
			HINT = 'A target is a number, or a label: text, an enum or a boolean.';
END $$;
COMMENT ON FUNCTION posterior_internal.target_is_number(regclass,
	text) IS 'whether a target is a number, else a label';

-- Rows in an order that depends on what is in them alone: a hash of their columns and the seed.
-- Times are hashed as seconds, texts whatever their collations; what calls it sets how the
-- digits of numbers are written.
CREATE FUNCTION posterior_internal.hash_of(relation regclass, columns text[], seed bigint)
	RETURNS text
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM posterior_internal.check_seed(seed);
	-- a function takes a hundred arguments
	RETURN (SELECT format('hashtextextended(concat_ws(E''\t'', %s), %s)',
		string_agg(format('concat_ws(E''\t'', %s)', part), ', ' ORDER BY chunk), seed)
		FROM (SELECT (i - 1) / 40 AS chunk,
				string_agg(format(CASE WHEN posterior_internal.base_type(a.atttypid)
					IN ('date'::regtype, 'timestamp', 'timestamptz', 'interval')
				THEN 'coalesce(extract(epoch FROM %I)::text, E''\n'')'
				ELSE 'coalesce(%I::text COLLATE "C", E''\n'')' END, c), ', ' ORDER BY i) AS part
			FROM unnest(columns) WITH ORDINALITY u (c, i)
				JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c
			GROUP BY (i - 1) / 40) p);
END $$;
COMMENT ON FUNCTION posterior_internal.hash_of(regclass, text[], bigint) IS
	'expression of a hash of columns';

-- How many rows have a target, where the question is whether there are enough.
CREATE FUNCTION posterior_internal.present_rows(relation regclass, target text, lowest integer,
	"by" text[] DEFAULT NULL) RETURNS integer
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	present integer;
	grouped boolean := coalesce(cardinality("by"), 0) > 0;
BEGIN
	EXECUTE format('SELECT max(n) FROM (SELECT count(*) AS n
		FROM (SELECT %1$s AS g FROM %2$s WHERE %3$I IS NOT NULL %4$s) p GROUP BY g) c',
		CASE WHEN grouped THEN posterior_internal.group_key(relation, "by") ELSE '1' END, relation,
		target, CASE WHEN grouped THEN '' ELSE format('LIMIT %s', lowest) END) INTO present;
	RETURN coalesce(present, 0);
END $$;
COMMENT ON FUNCTION posterior_internal.present_rows(regclass, text, integer, text[])
	IS 'rows that have a target, of the largest group; without groups, counted up to the lowest '
		'number that suffices';

-- How many labels a target has, in the group that has most.
CREATE FUNCTION posterior_internal.label_count(relation regclass, target text, "by" text[])
	RETURNS bigint
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	n bigint;
BEGIN
	EXECUTE format('SELECT max(n) FROM (SELECT count(DISTINCT y) AS n
		FROM (SELECT %1$s AS g, %3$I::text AS y FROM %2$s) p GROUP BY g) c',
		posterior_internal.group_key(relation, "by"), relation, target) INTO n;
	RETURN n;
END $$;
COMMENT ON FUNCTION posterior_internal.label_count(regclass, text, text[]) IS
	'how many labels a target has, in the group that has most';

-- An error unless enough rows have a target.
CREATE FUNCTION posterior_internal.check_present(relation regclass, target text, lowest integer,
	"by" text[] DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	present integer := posterior_internal.present_rows(relation, target, lowest, "by");
	grouped boolean := coalesce(cardinality("by"), 0) > 0;
BEGIN
	IF present < lowest THEN
		RAISE EXCEPTION 'relation % has too few rows whose "%" is not NULL', relation, target
			USING ERRCODE = 'no_data_found',
				DETAIL = format(CASE WHEN grouped
						THEN 'Its largest group has %s, and %s are needed.'
					ELSE 'It has %s, and %s are needed.' END, present, lowest),
				HINT = CASE WHEN grouped THEN
					'Columns of by tell groups of rows apart, not the rows of a group. ' ELSE '' END
					|| 'Name the right column; row-level security may hide rows.';
	END IF;
END $$;
COMMENT ON FUNCTION posterior_internal.check_present(regclass, text, integer,
	text[]) IS 'an error unless enough rows have a target';

-- An error unless a column can put rows with a target into an order of time.
CREATE FUNCTION posterior_internal.check_times(relation regclass, "time" text,
	target text) RETURNS void
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	timeless bigint;
BEGIN
	PERFORM posterior_internal.time_kind(relation, "time");
	EXECUTE format('SELECT count(*) FROM %s WHERE %I IS NULL AND %I IS NOT NULL', relation, "time",
		target) INTO timeless;
	IF timeless > 0 THEN
		RAISE EXCEPTION 'column "%" is NULL in % of the rows', "time", timeless
			USING ERRCODE = 'null_value_not_allowed',
				HINT = 'Leave these rows out in a view, WHERE the time IS NOT NULL.';
	END IF;
END $$;
COMMENT ON FUNCTION posterior_internal.check_times(regclass, text, text) IS
	'an error unless rows with a target have a time';

-- An error where a series has two rows with a target of one time: which is before the other?
CREATE FUNCTION posterior_internal.check_distinct_times(relation regclass, "time" text,
	target text, "by" text[]) RETURNS void
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	double record;
BEGIN
	EXECUTE format('SELECT g, t, count(*) AS n
		FROM (SELECT %s AS g, %I AS t FROM %s WHERE %I IS NOT NULL) r GROUP BY g, t
		HAVING count(*) > 1 LIMIT 1', posterior_internal.group_key(relation, "by"), "time",
		relation, target) INTO double;
	IF double.n > 1 THEN
		PERFORM posterior_internal.refuse_times(format('Column %I has %s rows of %s%s.', "time",
			double.n, double.t, ' in ' || double.g::text));
	END IF;
END $$;
COMMENT ON FUNCTION posterior_internal.check_distinct_times(regclass, text, text, text[]) IS
	'an error where a series has two rows of one time';

-- Ridge regression, which posterior.evaluate compares with.
CREATE FUNCTION posterior_internal.ridge(context posterior.context,
	rows posterior.context) RETURNS posterior.distribution[]
	AS 'MODULE_PATHNAME', 'posterior_ridge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10000;
COMMENT ON FUNCTION posterior_internal.ridge(posterior.context,
	posterior.context) IS 'answers of a ridge regression, one for each row';

-- Predictions of rows from other rows of the relation, in folds by a hash of the row, copies of
-- which go to different folds, or by a hash of the columns of `together`, whose rows stay in one
-- fold; with `time` a fold is answered from the folds before it. A context has the `max_rows` rows
-- of least hash, with `time` the latest.
CREATE FUNCTION posterior_internal.cross_predictions(relation regclass, target text,
	features text[], "by" text[], key text[], together text[], "time" text,
		folds integer, max_rows integer, seed bigint, number boolean, ridges boolean,
		OUT series jsonb, OUT row_key jsonb, OUT fold integer, OUT value float8, OUT label text,
			OUT prediction posterior.distribution, OUT simple posterior.distribution,
			OUT ridge posterior.distribution)
	RETURNS SETOF record
	LANGUAGE plpgsql VOLATILE SET jit = off SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	columns text := (SELECT string_agg(format('f%s', i), ', ' ORDER BY i)
		FROM generate_series(1, cardinality(features)) i);
	named text := (SELECT string_agg(format('%I AS f%s', f, i), ', ' ORDER BY i)
		FROM unnest(features) WITH ORDINALITY u (f, i));
	parts text := posterior_internal.hash_of(relation,
		coalesce(nullif(together, '{}'), features || target), seed);
BEGIN
	RETURN QUERY EXECUTE format($q$
		WITH given AS (
			SELECT coalesce(%1$s, 'null') AS series, %2$s AS row_key, %3$s AS y, %4$s, %5$s AS h,
				%6$s AS t FROM %7$s WHERE %8$I IS NOT NULL),
		r AS MATERIALIZED (
			SELECT g.*, CASE WHEN %9$L THEN (((rank() OVER (PARTITION BY g.series
				ORDER BY t) - 1) * %10$s) / count(*) OVER (PARTITION BY g.series))::integer
				ELSE ((h %% %10$s) + %10$s + CASE WHEN %17$L THEN 0
					ELSE row_number() OVER (PARTITION BY g.series, h) END) %% %10$s END AS fold
					FROM given g),
		members AS (
			SELECT r.*, k, row_number() OVER (PARTITION BY r.series,
				k ORDER BY CASE WHEN %9$L THEN t END DESC, h) AS place
			FROM r JOIN generate_series(0, %10$s - 1) k ON CASE WHEN %9$L THEN r.fold < k
				ELSE r.fold <> k END),
		contexts AS (
			SELECT series, k, %11$s(y, %12$s ORDER BY h) AS context, count(*) AS n, %13$s AS simple
				FROM members WHERE place <= %14$s GROUP BY series, k),
		questions AS (
			SELECT series, fold AS k, block, array_agg(ROW(%12$s) ORDER BY n) AS rows,
				%18$s AS asked, array_agg(y ORDER BY n) AS y,
				array_agg(row_key ORDER BY n) AS row_key
			FROM (SELECT r.*, row_number() OVER (PARTITION BY series, fold ORDER BY h) AS n,
				row_number() OVER (PARTITION BY series, fold ORDER BY h) / 1000 AS block FROM r) b
				GROUP BY series, fold, block)
		SELECT nullif(q.series, 'null'), q.row_key[p.ord], q.k::integer, %15$s, %16$s, p.prediction,
			c.simple, r.ridge[p.ord]
		FROM questions q JOIN contexts c USING (series, k),
			LATERAL (SELECT %19$s AS ridge OFFSET 0) r,
			LATERAL posterior.predict_rows(c.context, q.rows) p
		WHERE c.n >= 8$q$,
		posterior_internal.group_key(relation, "by"), posterior_internal.group_key(relation, key),
			CASE WHEN number THEN format('%I::float8', target) ELSE format('%I::text', target) END,
		named, parts, CASE WHEN "time" IS NULL THEN 'NULL::integer' ELSE format('%I', "time") END,
			relation, target, "time" IS NOT NULL, folds,
		CASE WHEN number THEN 'posterior.context' ELSE 'posterior.class_context' END, columns,
		CASE WHEN number THEN
			'posterior.normal(avg(y), greatest(coalesce(stddev(y), 0), 1e-9 * '
			'greatest(abs(avg(y)), 1e-100)))'
			ELSE 'NULL::posterior.distribution' END,
		max_rows, CASE WHEN number THEN 'q.y[p.ord]' ELSE 'NULL::float8' END,
			CASE WHEN number THEN 'NULL::text' ELSE 'q.y[p.ord]' END,
			coalesce(cardinality(together), 0) > 0,
		CASE WHEN number AND ridges THEN format('posterior.context(y, %s ORDER BY n)', columns)
			ELSE 'NULL::posterior.context' END,
		CASE WHEN number AND ridges THEN 'posterior_internal.ridge(c.context, q.asked)'
			ELSE 'NULL::posterior.distribution[]' END);
END $$;
COMMENT ON FUNCTION posterior_internal.cross_predictions(regclass, text, text[], text[], text[],
	text[], text, integer, integer, bigint, boolean, boolean)
	IS 'predictions of rows from other rows, fold by fold';

CREATE FUNCTION posterior.evaluate(relation regclass, target text, features text[] DEFAULT NULL,
	"by" text[] DEFAULT NULL, level float8 DEFAULT 0.9,
		folds integer DEFAULT 5, "time" text DEFAULT NULL, together text[] DEFAULT NULL,
			max_rows integer DEFAULT 1024, seed bigint DEFAULT 0,
		each_fold boolean DEFAULT false, model text DEFAULT NULL)
	RETURNS TABLE (series jsonb, fold integer, n bigint, log_density float8, crps float8,
		rmse float8, mae float8, coverage float8, width float8, pit float8[],
		accuracy float8, baseline_crps float8, baseline_rmse float8, baseline_accuracy float8,
			skill float8, ridge_log_density float8, ridge_crps float8, ridge_rmse float8)
	LANGUAGE plpgsql VOLATILE ROWS 10 COST 1000000 SET extra_float_digits = 1
	SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	before text;
	number boolean := posterior_internal.target_is_number(relation, target);
	used text[];
	name text;
	found boolean := false;
BEGIN
	PERFORM posterior_internal.check_level(level),
		posterior_internal.check_count(folds, 'folds', 2, 100,
		'folds => 5 answers each fifth of the rows from the others.'),
		posterior_internal.check_count(max_rows, 'max_rows', 8, 20000);
	IF "time" IS NOT NULL THEN
		PERFORM posterior_internal.check_times(relation, "time", target);
	END IF;
	FOREACH name IN ARRAY coalesce(together, '{}') LOOP
		PERFORM posterior_internal.check_column(relation, name, 'column whose rows stay together');
	END LOOP;
	used := posterior_internal.check_features(relation, target, features,
		coalesce("by", '{}') || coalesce(together, '{}'));
	before := posterior_internal.use_model(model, NOT number);
	FOR series, fold, n, log_density, crps, rmse, mae, coverage, width, pit, accuracy,
		baseline_crps, baseline_rmse, baseline_accuracy, skill, ridge_log_density, ridge_crps,
		ridge_rmse IN
		SELECT p.series, CASE WHEN each_fold THEN p.fold + 1 END, count(*),
			avg(CASE WHEN number THEN posterior.log_pdf(prediction, value)
				ELSE ln(greatest(posterior.probability(prediction, label), 1e-300)) END),
			avg(CASE WHEN number THEN posterior.crps(prediction, value) END),
				sqrt(sum(CASE WHEN number THEN (posterior.mean(prediction) - value) ^ 2 END)
					/ count(value)),
			avg(CASE WHEN number THEN abs(posterior.median(prediction) - value) END),
			avg(CASE WHEN number THEN (value <@ posterior.bounds(prediction,
				level))::integer::float8 END),
			avg(CASE WHEN number THEN posterior.quantile(prediction, (1 + level) / 2) -
				posterior.quantile(prediction, (1 - level) / 2) END),
			CASE WHEN number THEN posterior_internal.histogram(array_agg(CASE
				WHEN number THEN posterior.cdf(prediction, value) END)) END,
			avg(CASE WHEN NOT number THEN (posterior.most_probable(prediction) =
				label)::integer::float8 END),
			avg(CASE WHEN number THEN posterior.crps(simple, value) END),
				sqrt(sum(CASE WHEN number THEN (posterior.mean(simple) - value) ^ 2 END)
					/ count(value)),
			CASE WHEN NOT number THEN (SELECT max(c)
				FROM (SELECT count(*)::float8 / sum(count(*)) OVER () AS c
				FROM unnest(array_agg(label)) l GROUP BY l) l) END,
			CASE WHEN number THEN 1 - avg(CASE WHEN number THEN posterior.crps(prediction,
				value) END) / nullif(avg(CASE WHEN number THEN posterior.crps(simple, value) END),
				0) END,
			avg(CASE WHEN number THEN posterior.log_pdf(ridge, value) END),
			avg(CASE WHEN number THEN posterior.crps(ridge, value) END),
			sqrt(sum(CASE WHEN number THEN (posterior.mean(ridge) - value) ^ 2 END)
					/ count(value))
		FROM posterior_internal.cross_predictions(relation, target, used, "by", '{}', together,
			"time", folds, max_rows, seed, number, true) p
		GROUP BY 1, 2 ORDER BY 1, 2
	LOOP
		found := true;
		RETURN NEXT;
	END LOOP;
	IF NOT found THEN
		RAISE EXCEPTION 'relation % has too few rows with a target to evaluate', relation
			USING ERRCODE = 'no_data_found',
				HINT =
				'A context needs 8 rows outside of the fold that it answers. Rows whose target is '
				'NULL do not count.';
	END IF;
	PERFORM posterior_internal.use_model(before, NOT number);
END $$;
COMMENT ON FUNCTION posterior.evaluate(regclass, text, text[], text[], float8, integer, text,
	text[], integer, bigint, boolean, text)
	IS 'scores of predictions of a relation''s own rows from its other rows, in folds';

CREATE FUNCTION posterior.detect_anomalies(relation regclass, target text,
	features text[] DEFAULT NULL, "by" text[] DEFAULT NULL, level float8 DEFAULT 0.9,
		threshold float8 DEFAULT 0.01, "time" text DEFAULT NULL, history integer DEFAULT 128,
			key text[] DEFAULT NULL, folds integer DEFAULT 10,
		max_rows integer DEFAULT 1024, seed bigint DEFAULT 0, all_rows boolean DEFAULT false,
			model text DEFAULT NULL)
	RETURNS TABLE (series jsonb, row_key jsonb, at timestamptz, value float8, label text,
		surprise float8, median float8, low float8, high float8, prediction posterior.distribution)
	LANGUAGE plpgsql VOLATILE ROWS 100 COST 1000000 SET jit = off SET extra_float_digits = 1
	SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	before text;
	number boolean := posterior_internal.target_is_number(relation, target);
	used text[];
	shown text[];
	kind text := CASE WHEN "time" IS NOT NULL THEN posterior_internal.time_kind(relation,
		"time") END;
	source text;
	calendar text := '';
	partition text;
	xs text;
	-- names that no column has
	lags text := (SELECT string_agg(format('%I', n), ', ') FROM (SELECT n
		FROM generate_series(1, 1602) i, LATERAL (SELECT 'lag ' || i) l (n)
		WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = relation AND attname = n)
		ORDER BY i LIMIT 2) n);
BEGIN
	PERFORM posterior_internal.check_level(level),
		posterior_internal.check_count(history, 'history', 8, 20000,
		'history => 128 answers each row from the 128 rows before it.'),
		posterior_internal.check_count(folds, 'folds', 2, 100),
			posterior_internal.check_count(max_rows, 'max_rows', 8, 20000);
	IF threshold IS NULL OR NOT (threshold > 0 AND threshold <= 1) THEN
		RAISE EXCEPTION 'threshold must be above 0 and at most 1'
			USING ERRCODE = 'numeric_value_out_of_range',
			DETAIL = format('It is %s.', coalesce(threshold::text, 'NULL')),
			HINT =
				'threshold => 0.001 tells outcomes so far out that one in a thousand is by chance.';
	END IF;
	IF "time" IS NULL OR features IS NOT NULL THEN
		used := posterior_internal.check_features(relation, target, features,
			coalesce("by", '{}') || coalesce(key, '{}'));
	END IF;
	IF "time" IS NOT NULL THEN
		PERFORM posterior_internal.check_times(relation, "time", target),
			posterior_internal.check_distinct_times(relation, "time", target, "by");
	END IF;
	PERFORM posterior_internal.check_present(relation, target, 9, "by");
	shown := posterior_internal.key_columns(relation, key, coalesce("by", '{}') || CASE
		WHEN "time" IS NULL THEN coalesce(used, '{}') ELSE ARRAY["time"] END);
	before := posterior_internal.use_model(model, NOT number);
	IF "time" IS NULL THEN
		source :=
			format('SELECT series, row_key, NULL::timestamptz AS at, value, label, prediction
				FROM posterior_internal.cross_predictions(%L, %L, %L, %L, %L, NULL, NULL,
					%s, %s, %s, %L, false)',
			relation, target, used, "by", shown, folds, max_rows, seed, number);
	ELSE
		IF kind <> 'integer' THEN
			calendar := ', c.hour_sin, c.hour_cos, c.weekday_sin, c.weekday_cos';
		END IF;
		partition := CASE WHEN coalesce(cardinality("by"), 0) > 0 THEN 'PARTITION BY '
			|| (SELECT string_agg(format('r.%I', b), ', ') FROM unnest("by") b) ELSE '' END;
		xs := coalesce((SELECT string_agg(format('r.%I', f), ', ' ORDER BY i)
			FROM unnest(used) WITH ORDINALITY u (f, i)),
			CASE WHEN kind = 'integer' THEN format('r.%I', "time")
				ELSE format('extract(epoch FROM r.%I)', "time") END) || calendar;
		-- the values before a row are columns of it, numbers only
		source := format($q$SELECT %1$s AS series, %2$s AS row_key, %3$s, %4$s AS prediction
			FROM (SELECT %5$s, r.* FROM %6$s r
					WINDOW o AS (%7$s ORDER BY r.%8$I)) r (%11$s) %9$s
			WINDOW w AS (%7$s ORDER BY r.%8$I
				ROWS BETWEEN %10$s PRECEDING AND 1 PRECEDING)$q$,
			posterior_internal.group_key(relation, "by", '{}', 'r'),
				posterior_internal.group_key(relation, shown, '{}', 'r'),
			CASE WHEN kind = 'integer' THEN 'NULL::timestamptz' ELSE format('r.%I::timestamptz',
				"time") END
				|| CASE WHEN number THEN
					format(' AS at, r.%I::float8 AS value, NULL::text AS label', target)
					ELSE format(' AS at, NULL::float8 AS value, r.%I::text AS label', target) END,
			CASE WHEN number THEN format('posterior.regress(r.%I::float8, %s, %s) OVER w', target,
				xs, lags) ELSE format('posterior.classify(r.%I, %s) OVER w', target, xs) END,
			CASE WHEN number THEN
				format('lag(r.%1$I::float8) OVER o, lag(r.%1$I::float8, 2) OVER o', target)
				ELSE 'NULL::float8, NULL::float8' END,
			relation, partition, "time",
				CASE WHEN kind <> 'integer' THEN format(', posterior.calendar(r.%I) c', "time")
				ELSE '' END, history, lags);
	END IF;
	RETURN QUERY EXECUTE format($q$
		SELECT series, row_key, at, value, label, s, %1$s, prediction
		FROM (SELECT *, CASE WHEN value IS NOT NULL THEN posterior.surprise(prediction, value)
			ELSE coalesce(posterior.surprise(prediction, label),
			CASE WHEN label IS NOT NULL THEN 0 END) END AS s FROM (%2$s) p
			WHERE prediction IS NOT NULL) t
		WHERE %3$L OR s < %4$s$q$,
		CASE WHEN number THEN
			format('posterior.median(prediction), posterior.quantile(prediction, %s), '
				'posterior.quantile(prediction, %s)', (1
			- level) / 2, (1 + level) / 2)
			ELSE 'NULL::float8, NULL::float8, NULL::float8' END, source, all_rows, threshold);
	PERFORM posterior_internal.use_model(before, NOT number);
END $$;
COMMENT ON FUNCTION posterior.detect_anomalies(regclass, text, text[], text[], float8, float8, text,
	integer, text[], integer, integer, bigint, boolean, text)
	IS 'rows whose target is surprising, given the rows before them in time or the other rows';

-- One column's missing cells: distributions, and with draws joint draws of them. A row of a draw
-- has what that draw has put into the columns before, `filled`: {row: {column: [draws]}}. Each
-- column, group and block of cells has random numbers of its own.
CREATE FUNCTION posterior_internal.impute_column(relation regclass, target text, number boolean,
	used text[], "by" text[], shown text[], level float8, draws integer, max_rows integer,
	seed bigint, filled jsonb, before text[],
		OUT series jsonb, OUT row_key jsonb, OUT prediction posterior.distribution,
		OUT value text, OUT low float8, OUT high float8, OUT drawn text[])
	RETURNS SETOF record
	LANGUAGE plpgsql VOLATILE SET jit = off SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	fs text;
	named text;
	cells text;
	chained boolean := filled IS NOT NULL AND used && before;
	sampled text := CASE WHEN number THEN 'y::text' ELSE 'label' END;
	sample text := CASE WHEN number THEN 'posterior.sample' ELSE 'posterior.sample_labels' END;
	own_seed text := format('hashtextextended(concat_ws(E''\t'', %L, q.series, q.block%s), %s)',
		target, CASE WHEN chained THEN ', r.draw' ELSE '' END, seed);
BEGIN
	SELECT string_agg(format('f%s', i), ', ' ORDER BY i),
		string_agg(format('%I AS f%s', f, i), ', ' ORDER BY i),
		string_agg(CASE WHEN f = ANY (before) THEN
			format('coalesce(b.f%1$s%2$s, (f.cells->%3$L->>(draw - 1))::%4$s)', i,
				CASE WHEN posterior_internal.is_number(a.atttypid) THEN '::float8' ELSE '' END, f,
				CASE WHEN posterior_internal.is_number(a.atttypid) THEN 'float8'
				ELSE format_type(a.atttypid, a.atttypmod) END)
			ELSE format('b.f%s', i) END, ', ' ORDER BY i)
	INTO fs, named, cells
	FROM unnest(used) WITH ORDINALITY u (f, i)
		JOIN pg_attribute a ON a.attrelid = relation AND a.attname = f;
	RETURN QUERY EXECUTE format($q$
		WITH given AS MATERIALIZED (
			SELECT coalesce(%1$s, 'null') AS series, %2$s AS row_key, %3$s AS y, %4$s, %5$s AS h
				FROM %6$s),
		c AS (SELECT series, %7$s(y, %8$s ORDER BY h) AS context, count(*) AS n
			FROM (SELECT *, row_number() OVER (PARTITION BY series ORDER BY h, row_key) AS place
				FROM given WHERE y IS NOT NULL) k WHERE place <= %9$s GROUP BY series),
		b AS (SELECT *, row_number() OVER w AS n, (row_number() OVER w - 1) / %10$s AS block
			FROM given WHERE y IS NULL
			WINDOW w AS (PARTITION BY series ORDER BY h, row_key)),
		q AS (SELECT series, block, array_agg(ROW(%8$s) ORDER BY n) AS rows,
			array_agg(row_key ORDER BY n) AS row_key FROM b GROUP BY series, block)
		SELECT nullif(q.series, 'null'), q.row_key[p.ord], p.prediction, %11$s, d.drawn
		FROM q JOIN c USING (series), LATERAL posterior.predict_rows(c.context, q.rows) p
			LEFT JOIN LATERAL (%12$s) d ON d.ord = p.ord
		WHERE c.n >= 8$q$,
		posterior_internal.group_key(relation, "by"),
		posterior_internal.group_key(relation, shown),
		format(CASE WHEN number THEN '%I::float8' ELSE '%I::text' END, target), named,
		posterior_internal.hash_of(relation, used || target, seed), relation,
		CASE WHEN number THEN 'posterior.context' ELSE 'posterior.class_context' END, fs, max_rows,
		CASE WHEN draws > 0 THEN 256 ELSE 1000 END,
		CASE WHEN number THEN
			format('posterior.median(p.prediction)::text, posterior.quantile(p.prediction, %s),
				posterior.quantile(p.prediction, %s)', (1 - level) / 2, (1 + level) / 2)
			ELSE 'posterior.most_probable(p.prediction), NULL::float8, NULL::float8' END,
		CASE WHEN draws = 0 THEN 'SELECT NULL::integer AS ord, NULL::text[] AS drawn'
			WHEN NOT chained THEN
				format('SELECT ord, array_agg(%s ORDER BY draw) AS drawn
					FROM %s(c.context, q.rows, %s, %s) GROUP BY ord', sampled, sample, draws,
					own_seed)
			ELSE format('SELECT s.ord, array_agg(%s ORDER BY r.draw) AS drawn
				FROM (SELECT draw, array_agg(ROW(%s) ORDER BY n) AS rows
					FROM generate_series(1, %s) draw CROSS JOIN b
						LEFT JOIN jsonb_each($1) f (key, cells)
							ON f.key = b.series::text || b.row_key::text
					WHERE b.series = q.series AND b.block = q.block GROUP BY draw) r,
					LATERAL %s(c.context, r.rows, 1, %s) s GROUP BY s.ord',
				's.' || sampled, cells, draws, sample, own_seed) END)
	USING filled;
END $$;
COMMENT ON FUNCTION posterior_internal.impute_column(regclass, text, boolean, text[], text[],
	text[], float8, integer, integer, bigint, jsonb, text[])
	IS 'distributions and draws of the missing cells of one column';

CREATE FUNCTION posterior.impute(relation regclass, columns text[] DEFAULT NULL,
	features text[] DEFAULT NULL, "by" text[] DEFAULT NULL, level float8 DEFAULT 0.9,
		key text[] DEFAULT NULL, draws integer DEFAULT 0, max_rows integer DEFAULT 1024,
			seed bigint DEFAULT 0, model text DEFAULT NULL, class_model text DEFAULT NULL)
	RETURNS TABLE (series jsonb, row_key jsonb, column_name text, prediction posterior.distribution,
		value text, low float8, high float8, drawn text[])
	LANGUAGE plpgsql VOLATILE ROWS 100 COST 1000000 SET jit = off SET extra_float_digits = 1
	SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	model_before text;
	class_before text;
	target text;
	number boolean;
	shown text[] := posterior_internal.key_columns(relation, key, NULL);
	targets text[] := columns;
	filling text[] := '{}';
	sparse text[] := '{}';
	many text[] := '{}';
	missing bigint[] := '{}';
	cells bigint;
	used text[];
	before text[] := '{}';
	filled jsonb;
	keys text[] := '{}';
	names text[] := '{}';
	values jsonb[] := '{}';
BEGIN
	PERFORM posterior_internal.check_level(level), posterior_internal.check_seed(seed),
		posterior_internal.check_count(draws, 'draws', 0, 10000),
		posterior_internal.check_count(max_rows, 'max_rows', 8, 20000);
	PERFORM posterior_internal.group_key(relation, "by", coalesce(columns, '{}'));
	IF (SELECT count(DISTINCT c) FROM unnest(columns) c) < cardinality(columns) THEN
		RAISE EXCEPTION 'a column to fill is given twice'
			USING ERRCODE = 'invalid_parameter_value', DETAIL = format('Columns are %s.', columns),
				HINT = 'Name each of them once.';
	END IF;
	IF shown IS NULL THEN
		RAISE EXCEPTION 'relation % has no primary key', relation
			USING ERRCODE = 'undefined_object',
				HINT =
				'Name the columns that tell its rows, as in key => ''{id}'', so that you know '
				'which cell is filled.';
	END IF;
	IF targets IS NULL THEN
		SELECT array_agg(attname::text ORDER BY attnum) INTO targets FROM pg_attribute
		WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped AND NOT attnotnull
			AND attname <> ALL (shown || coalesce("by", '{}'))
			AND posterior_internal.is_feature(atttypid)
				AND posterior_internal.base_type(atttypid) NOT IN ('date'::regtype, 'timestamp',
				'timestamptz', 'interval');
	END IF;
	FOREACH target IN ARRAY coalesce(targets, '{}') LOOP
		-- a column that was not named and is hardly used is no reason to fill none
		IF columns IS NULL AND posterior_internal.present_rows(relation, target, 8, "by") < 8 THEN
			sparse := sparse || target;
			CONTINUE;
		END IF;
		number := posterior_internal.target_is_number(relation, target);
		IF columns IS NULL AND NOT number
			AND posterior_internal.label_count(relation, target, "by") > (SELECT m.classes
				FROM posterior.models m WHERE m.name = coalesce(class_model,
				nullif(current_setting('posterior.class_model', true), ''), 'tabular_class')) THEN
			many := many || target;
			CONTINUE;
		END IF;
		IF columns IS NOT NULL THEN
			PERFORM posterior_internal.check_present(relation, target, 8, "by");
		END IF;
		EXECUTE format('SELECT count(*) FROM %s WHERE %I IS NULL', relation, target) INTO cells;
		filling := filling || target;
		missing := missing || cells;
	END LOOP;
	IF many <> '{}' THEN
		RAISE WARNING 'columns with more labels than the model tells apart are left as they are: %',
			array_to_string(many, ', ');
	END IF;
	IF sparse <> '{}' AND filling = '{}' AND many = '{}' THEN
		PERFORM posterior_internal.check_present(relation, sparse[1], 8, "by");
	ELSIF sparse <> '{}' THEN
		RAISE WARNING 'columns with less than 8 values are left as they are: %',
			array_to_string(sparse, ', ');
	END IF;
	model_before := posterior_internal.use_model(model);
	class_before := posterior_internal.use_model(class_model, true);
	-- the columns with the fewest missing cells first: the more is known when the others are drawn
	FOR target, cells IN SELECT t, m FROM unnest(filling, missing) WITH ORDINALITY u (t, m, i)
		ORDER BY CASE WHEN draws > 0 THEN m END, i LOOP
		-- a feature without missing cells may be the only one
		CONTINUE WHEN cells = 0 AND target = ANY (features);
		used := posterior_internal.check_features(relation, target, array_remove(features, target),
			shown || coalesce("by", '{}'));
		CONTINUE WHEN cells = 0;
		number := posterior_internal.target_is_number(relation, target);
		FOR series, row_key, prediction, value, low, high, drawn IN
			SELECT c.series, c.row_key, c.prediction, c.value, c.low, c.high, c.drawn
			FROM posterior_internal.impute_column(relation, target, number, used, "by", shown,
				level, draws, max_rows, seed, filled, before) c
		LOOP
			column_name := target;
			RETURN NEXT;
			IF draws > 0 THEN
				keys := keys || (coalesce(series, 'null')::text || row_key::text);
				names := names || target;
				values := values || to_jsonb(drawn);
			END IF;
		END LOOP;
		IF draws > 0 THEN
			before := before || target;
			SELECT jsonb_object_agg(u.key, u.cells), sum(u.rows) INTO filled, cells
			FROM (SELECT u.key, jsonb_object_agg(u.name, u.value) AS cells,
					count(DISTINCT u.name) AS rows
				FROM unnest(keys, names, values) u (key, name, value) GROUP BY u.key) u;
			IF cells < cardinality(keys) THEN
				RAISE EXCEPTION 'two rows have the same key'
					USING ERRCODE = 'cardinality_violation',
					DETAIL = format('The key is %s.', shown),
					HINT = 'Name columns that tell every row from the others, as in '
					'key => ''{id}''.';
			END IF;
		END IF;
	END LOOP;
	PERFORM posterior_internal.use_model(model_before),
		posterior_internal.use_model(class_before, true);
END $$;
COMMENT ON FUNCTION posterior.impute(regclass, text[], text[], text[], float8, text[], integer,
	integer, bigint, text, text)
	IS
		'distributions of the missing cells of a relation, given the other cells of their rows, '
		'and joint draws of all of them';

CREATE FUNCTION posterior.importance(relation regclass, target text, features text[] DEFAULT NULL,
	"by" text[] DEFAULT NULL, folds integer DEFAULT 5,
		max_rows integer DEFAULT 512, seed bigint DEFAULT 0, model text DEFAULT NULL)
	RETURNS TABLE (series jsonb, feature text, evidence_loss float8, permutation_loss float8)
	LANGUAGE plpgsql VOLATILE ROWS 10 COST 1000000 SET jit = off SET extra_float_digits = 1
	SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	before text;
	number boolean := posterior_internal.target_is_number(relation, target);
	used text[] := posterior_internal.check_features(relation, target, features,
		coalesce("by", '{}'));
	k integer := cardinality(used);
	fs text := (SELECT string_agg(format('f%s', i), ', ' ORDER BY i)
		FROM generate_series(1, cardinality(used)) i);
	evidence text;
	losses text;
BEGIN
	PERFORM posterior_internal.check_count(folds, 'folds', 2, 100),
		posterior_internal.check_count(max_rows, 'max_rows', 16, 20000);
	before := posterior_internal.use_model(model, NOT number);
	evidence := CASE WHEN k = 1 THEN
		'SELECT series, 1 AS i, NULL::float8 AS loss FROM r GROUP BY series' ELSE
		(SELECT string_agg(format('SELECT series, %s AS i,
			(max(w.whole) - posterior.log_evidence(y, %s ORDER BY h)) / nullif(count(y), 0) AS loss
			FROM r JOIN w USING (series) GROUP BY series',
			i,
			(SELECT string_agg(format('f%s', j), ', ' ORDER BY j) FROM generate_series(1, k) j
				WHERE j <> i)), ' UNION ALL ' ORDER BY i) FROM generate_series(1, k) i) END;
	-- the value of another row of the same fold: the next in the order of the hash
	losses := (SELECT string_agg(format($q$SELECT a.series, %1$s AS i, avg(a.score - %2$s) AS loss
			FROM answers a JOIN (SELECT series, fold, array_agg(ROW(%3$s) ORDER BY n) AS rows
				FROM (SELECT *, lead(f%1$s, 1, first) OVER (PARTITION BY series,
				fold ORDER BY n) AS other
				FROM (SELECT n.*, first_value(f%1$s) OVER (PARTITION BY series,
				fold ORDER BY n) AS first FROM numbered n) f) o GROUP BY series, fold) q
				USING (series, fold)
				JOIN contexts c USING (series, fold),
					LATERAL posterior.predict_rows(c.context, q.rows) p WHERE p.ord = a.ord
					GROUP BY a.series$q$,
			i, CASE WHEN number THEN 'posterior.log_pdf(p.prediction, a.y)'
				ELSE 'ln(greatest(posterior.probability(p.prediction, a.y), 1e-300))' END,
			(SELECT string_agg(CASE WHEN j = i THEN 'other' ELSE format('f%s', j) END,
				', ' ORDER BY j) FROM generate_series(1, k) j)), ' UNION ALL ' ORDER BY i)
				FROM generate_series(1, k) i);
	RETURN QUERY EXECUTE format($q$
		WITH r AS MATERIALIZED (
			SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY series ORDER BY h) AS place
				FROM (SELECT coalesce(%1$s, 'null') AS series, %2$s AS y, %3$s, %4$s AS h FROM %5$s
					WHERE %6$I IS NOT NULL) g) p WHERE place <= %7$s),
		w AS (SELECT series, posterior.log_evidence(y, %8$s ORDER BY h) AS whole FROM r
			GROUP BY series HAVING count(*) >= 16),
		e AS (%9$s),
		folded AS (SELECT r.*, (place %% %10$s)::integer AS fold FROM r JOIN w USING (series)),
		contexts AS MATERIALIZED (SELECT f.series, k AS fold, %11$s(y, %8$s ORDER BY h) AS context
			FROM folded f JOIN generate_series(0, %10$s - 1) k ON f.fold <> k GROUP BY f.series, k),
		numbered AS MATERIALIZED (SELECT *,
			row_number() OVER (PARTITION BY series, fold ORDER BY h) AS n FROM folded),
		answers AS MATERIALIZED (
			SELECT q.series, q.fold, p.ord, q.y[p.ord] AS y, %12$s AS score
			FROM (SELECT series, fold, array_agg(ROW(%8$s) ORDER BY n) AS rows,
				array_agg(y ORDER BY n) AS y FROM numbered GROUP BY series, fold) q JOIN contexts c
				USING (series, fold),
				LATERAL posterior.predict_rows(c.context, q.rows) p),
		l AS (%13$s)
		SELECT nullif(l.series, 'null'), ($1)[l.i], e.loss, l.loss FROM l JOIN e
			USING (series, i) ORDER BY l.series, l.loss DESC, l.i$q$,
		posterior_internal.group_key(relation, "by"),
			format(CASE WHEN number THEN '%I::float8' ELSE '%I::text' END, target),
		(SELECT string_agg(format('%I AS f%s', f, i), ', ' ORDER BY i)
			FROM unnest(used) WITH ORDINALITY u (f, i)),
			posterior_internal.hash_of(relation, used || target, seed), relation, target, max_rows,
			fs,
		evidence, folds, CASE WHEN number THEN 'posterior.context'
			ELSE 'posterior.class_context' END,
		CASE WHEN number THEN 'posterior.log_pdf(p.prediction, q.y[p.ord])'
			ELSE 'ln(greatest(posterior.probability(p.prediction, q.y[p.ord]), 1e-300))' END,
			losses)
	USING used;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'relation % has too few rows with a target to tell importances', relation
			USING ERRCODE = 'no_data_found', HINT = '16 rows are needed in a group.';
	END IF;
	PERFORM posterior_internal.use_model(before, NOT number);
END $$;
COMMENT ON FUNCTION posterior.importance(regclass, text, text[], text[], integer, integer, bigint,
	text)
	IS 'log evidence and held-out log density that each feature adds, per row';
