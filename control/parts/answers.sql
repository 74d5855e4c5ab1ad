-- ---- score, contrast, suggest, order_gap, watch -------------------------------------------------

CREATE FUNCTION posterior_internal.context_row(context text) RETURNS posterior.contexts
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	defined posterior.contexts;
	type text;
BEGIN
	SELECT c.* INTO defined FROM posterior.contexts c WHERE c.name = context;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'context "%" does not exist', coalesce(context, 'NULL')
			USING ERRCODE = 'undefined_object',
				HINT =
				'The view posterior.contexts lists those whose relation you may read; '
				'posterior.create_context makes one.';
	END IF;
	SELECT format_type(a.atttypid, NULL) INTO type FROM pg_attribute a
	WHERE a.attrelid = defined.relation AND a.attname = defined.target::name;
	IF type LIKE '%[]' OR type IS NULL AND defined.target LIKE '{%' THEN
		RAISE EXCEPTION 'context "%" has several targets, and this function is about one', context
			USING ERRCODE = 'feature_not_supported',
				DETAIL = format(CASE WHEN type IS NULL THEN 'They are %s.'
					ELSE 'They are the elements of %s.' END, defined.target),
				HINT = 'posterior.predict_targets answers about all of them; a context for each '
					'of them answers about that one.';
	END IF;
	RETURN defined;
END $$;
COMMENT ON FUNCTION posterior_internal.context_row(text) IS 'definition of a context, or an error';

-- Statements of these functions name whole rows as r.*, which no column can take the place of; in a
-- list of columns it stands in coalesce(), because it is all columns there.

-- The features alone of the row r, so that the caller needs no right to read other columns.
CREATE FUNCTION posterior_internal.feature_row(features text[]) RETURNS text
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT format('(SELECT coalesce(f.*) FROM (SELECT %s) f)',
		string_agg(format('r.%I', name), ', ' ORDER BY ord))
	FROM unnest(features) WITH ORDINALITY f (name, ord)
$$;
COMMENT ON FUNCTION posterior_internal.feature_row(text[]) IS
	'expression for the features of the row r, as a row';

CREATE FUNCTION posterior.score(context text, relation regclass, key text[] DEFAULT NULL,
	levels float8[] DEFAULT '{0.05,0.5,0.95}', only_missing boolean DEFAULT false,
		block integer DEFAULT 1000)
	RETURNS TABLE (row_key jsonb, mean float8, stddev float8, quantiles float8[], label text,
		probability float8)
	LANGUAGE plpgsql VOLATILE ROWS 1000 COST 1000000 SET jit = off SET search_path = pg_catalog,
		pg_temp AS $$
#variable_conflict use_column
DECLARE
	defined posterior.contexts := posterior_internal.context_row(context);
	number boolean := posterior_internal.target_is_number(defined.relation, defined.target)
		AND (SELECT m.classes IS NULL FROM posterior.models m WHERE m.name = defined.model);
	feature text;
	shown text[];
BEGIN
	PERFORM posterior_internal.check_count(block, 'block', 1, 65536,
		'block is how many rows are asked at once.');
	IF EXISTS (SELECT FROM unnest(levels) l WHERE l IS NULL OR NOT (l >= 0 AND l <= 1)) THEN
		RAISE EXCEPTION 'levels must be between 0 and 1'
			USING ERRCODE = 'numeric_value_out_of_range', DETAIL = format('They are %s.', levels),
			HINT = 'levels => ''{0.05,0.5,0.95}'' asks for the median and a band of 90 %.';
	END IF;
	FOREACH feature IN ARRAY defined.features LOOP
		PERFORM posterior_internal.check_column(relation, feature, 'feature of the context');
	END LOOP;
	IF only_missing THEN
		PERFORM posterior_internal.check_column(relation, defined.target, 'target of the context');
	END IF;
	shown := posterior_internal.key_columns(relation, key, defined.features);
	RETURN QUERY EXECUTE format($q$
		SELECT b.row_key[s.ord], %1$s
		FROM (SELECT array_agg(r ORDER BY n) AS rows, array_agg(row_key ORDER BY n) AS row_key
			FROM (SELECT %7$s AS r, %2$s AS row_key, row_number() OVER () AS n
				FROM %3$s r %4$s) r
				GROUP BY (n - 1) / %5$s) b, LATERAL %6$s s$q$,
		CASE WHEN number THEN 's.mean, s.stddev, s.quantiles, NULL::text, NULL::float8'
			ELSE
				'NULL::float8, NULL::float8, NULL::float8[], '
				'posterior.most_probable(s.prediction), posterior.probability(s.prediction, '
				'posterior.most_probable(s.prediction))' END,
		posterior_internal.group_key(relation, shown, '{}', 'r'), relation,
			CASE WHEN only_missing THEN format('WHERE r.%I IS NULL', defined.target) ELSE '' END,
			block,
		CASE WHEN number THEN 'posterior.predict_summary($1, b.rows, $2)'
			ELSE 'posterior.predict_rows($1, b.rows)' END,
		posterior_internal.feature_row(defined.features))
	USING context, levels;
END $$;
COMMENT ON FUNCTION posterior.score(text, regclass, text[], float8[], boolean,
	integer) IS 'predictions for all rows of a relation, in blocks, given a named context';

CREATE FUNCTION posterior.contrast(context text, "row" jsonb, other jsonb, level float8 DEFAULT 0.9,
	draws integer DEFAULT 1000, seed bigint DEFAULT 0,
		OUT mean float8, OUT other_mean float8, OUT difference float8, OUT low float8,
			OUT high float8, OUT probability_greater float8)
	LANGUAGE plpgsql STABLE COST 100000 SET jit = off SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM posterior_internal.check_level(level), posterior_internal.check_seed(seed),
		posterior_internal.check_count(draws, 'draws', 10, 100000),
		posterior_internal.check_number(c.relation, c.target, 'target')
		FROM posterior_internal.context_row(context) c;
	IF "row" IS NULL OR other IS NULL THEN
		RAISE EXCEPTION 'a row to contrast is NULL' USING ERRCODE = 'null_value_not_allowed',
			HINT = 'A missing cell is a null inside the row, as in {"price": null}.';
	END IF;
	mean := posterior.mean(posterior.predict(context::name, "row"));
	other_mean := posterior.mean(posterior.predict(context::name, other));
	difference := other_mean - mean;
	SELECT q[1], q[2], greater INTO low, high, probability_greater
	FROM (SELECT percentile_cont(ARRAY[(1 - level) / 2, (1 + level) / 2]) WITHIN
		GROUP (ORDER BY d) AS q, avg((d > 0)::integer) AS greater
		FROM (SELECT sum(CASE s.ord WHEN 2 THEN s.y ELSE -s.y END) AS d
			FROM posterior.sample(context, ARRAY["row", other], draws, seed) s
			GROUP BY s.draw) d) q;
END $$;
COMMENT ON FUNCTION posterior.contrast(text, jsonb, jsonb, float8, integer,
	bigint) IS 'what if: the difference between the outcomes of two rows, from joint draws';

CREATE FUNCTION posterior.suggest(context text, candidates regclass, n integer DEFAULT 1,
	maximize boolean DEFAULT true, method text DEFAULT 'draws', best float8 DEFAULT NULL,
		kappa float8 DEFAULT 2, draws integer DEFAULT 256, key text[] DEFAULT NULL,
			seed bigint DEFAULT 0)
	RETURNS TABLE (rank integer, row_key jsonb, share float8, improvement float8, bound float8,
		mean float8, stddev float8)
	LANGUAGE plpgsql VOLATILE ROWS 10 COST 1000000 SET jit = off SET search_path = pg_catalog,
		pg_temp AS $$
#variable_conflict use_column
DECLARE
	defined posterior.contexts := posterior_internal.context_row(context);
	shown text[];
	feature text;
	goal float8 := best;
	many bigint;
BEGIN
	PERFORM posterior_internal.check_count(n, 'n', 1, 100000), posterior_internal.check_seed(seed),
		posterior_internal.check_count(draws, 'draws', 1, 100000);
	IF method IS NULL OR method NOT IN ('draws', 'improvement', 'bound') THEN
		RAISE EXCEPTION 'unknown method "%"', coalesce(method, 'NULL')
			USING ERRCODE = 'invalid_parameter_value',
			HINT = 'Methods are draws (Thompson), improvement and bound.';
	END IF;
	PERFORM posterior_internal.check_number(defined.relation, defined.target, 'target');
	FOREACH feature IN ARRAY defined.features LOOP
		PERFORM posterior_internal.check_column(candidates, feature, 'feature of the context');
	END LOOP;
	shown := posterior_internal.key_columns(candidates, key, defined.features);
	EXECUTE format('SELECT count(*) FROM (SELECT FROM %s LIMIT 4097) c', candidates) INTO many;
	IF many NOT BETWEEN 1 AND 4096 THEN
		RAISE EXCEPTION 'there must be 1 to 4096 candidates'
			USING ERRCODE = 'invalid_parameter_value',
			DETAIL = format('Relation %s has %s.', candidates, CASE WHEN many = 0 THEN 'none'
			ELSE 'more' END),
			HINT = 'Make a view of those that are worth a look, as by TABLESAMPLE.';
	END IF;
	IF goal IS NULL THEN
		EXECUTE format('SELECT %s(%I)::float8 FROM %s WHERE %s', CASE WHEN maximize THEN 'max'
			ELSE 'min' END, defined.target, defined.relation, coalesce(defined.filter, 'true'))
			INTO goal;
	END IF;
	RETURN QUERY EXECUTE format($q$
		WITH q AS MATERIALIZED (SELECT array_agg(r ORDER BY row_key) AS rows,
			array_agg(row_key ORDER BY row_key) AS row_key
			FROM (SELECT %5$s AS r, %1$s AS row_key FROM %2$s r) r),
		p AS MATERIALIZED (SELECT p.ord, p.prediction
			FROM q, LATERAL posterior.predict_rows($1, q.rows) p),
		won AS (SELECT ord, count(*)::float8 / $2 AS share
			FROM (SELECT DISTINCT ON (s.draw) s.draw, s.ord
			FROM q, LATERAL posterior.sample($1, q.rows, $2, $3) s ORDER BY s.draw, s.y %3$s,
			s.ord) w GROUP BY ord),
		c AS (SELECT p.ord, coalesce(w.share, 0) AS share,
			posterior.expected_improvement(p.prediction, $4, $5) AS improvement,
			posterior.upper_confidence_bound(p.prediction,
				CASE WHEN $5 THEN $6 ELSE -$6 END) AS bound, posterior.mean(p.prediction) AS mean,
				posterior.stddev(p.prediction) AS stddev
			FROM p LEFT JOIN won w USING (ord))
		SELECT (row_number() OVER o)::integer, q.row_key[c.ord], c.share, c.improvement, c.bound,
			c.mean, c.stddev FROM c, q
		WINDOW o AS (ORDER BY %4$s, c.improvement DESC, c.ord) ORDER BY 1 LIMIT $7$q$,
		posterior_internal.group_key(candidates, shown, '{}', 'r'), candidates,
			CASE WHEN maximize THEN 'DESC' ELSE 'ASC' END,
		CASE method WHEN 'draws' THEN 'c.share DESC' WHEN 'improvement' THEN 'c.improvement DESC'
			ELSE 'c.bound ' || CASE WHEN maximize THEN 'DESC' ELSE 'ASC' END END,
		posterior_internal.feature_row(defined.features))
	USING context, draws, seed, goal, maximize, kappa, n;
END $$;
COMMENT ON FUNCTION posterior.suggest(text, regclass, integer, boolean, text, float8, float8,
	integer, text[], bigint)
	IS
		'which candidates to try next: best in joint draws, by expected improvement or by a '
		'confidence bound';

CREATE FUNCTION posterior.order_gap(context text, relation regclass, orders integer DEFAULT 32,
	draws integer DEFAULT 32, seed bigint DEFAULT 0,
		OUT rows bigint, OUT log_density float8, OUT log_density_stddev float8, OUT gap float8,
			OUT kl_gap float8)
	LANGUAGE plpgsql VOLATILE COST 1000000 SET jit = off SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	defined posterior.contexts := posterior_internal.context_row(context);
BEGIN
	PERFORM posterior_internal.check_count(orders, 'orders', 2, 10000),
		posterior_internal.check_seed(seed),
		posterior_internal.check_count(draws, 'draws', 0, 10000),
		posterior_internal.check_number(defined.relation, defined.target, 'target'),
			posterior_internal.check_number(relation, defined.target, 'target of the context');
	EXECUTE format('SELECT count(*) FROM (SELECT FROM %s WHERE %I IS NOT NULL LIMIT 1025) r',
		relation, defined.target) INTO rows;
	IF rows NOT BETWEEN 2 AND 1024 THEN
		RAISE EXCEPTION 'an order gap is told of 2 to 1024 rows with a target'
			USING ERRCODE = 'invalid_parameter_value',
			DETAIL = format('Relation %s has %s.', relation, CASE WHEN rows > 1024 THEN 'more'
			ELSE rows::text END),
			HINT = 'Make a view of fewer rows; all of them together are one joint question.';
	END IF;
	-- on what was observed: the mean over orders of log q, and the logarithm of the mean of q, of
	-- the same orders
	EXECUTE format($q$
		SELECT avg(l), nullif(stddev(l), 'NaN'),
			nullif(max(l) + ln(avg(exp(greatest(l - m, -700)))) - avg(l), 'NaN')
		FROM (SELECT l, max(l) OVER () AS m FROM (
			SELECT (SELECT posterior.log_density_averaged($1, 1, hashint8extended(o.i, $2),
				r.%1$I::float8, r.*)
				FROM %2$s r WHERE r.%1$I IS NOT NULL) AS l
				FROM generate_series(1, $3) o (i)) o) m$q$,
		defined.target, relation) INTO log_density, log_density_stddev, gap
			USING context, seed, orders;
	-- on what the model draws in the order of the rows: log q of that order against the mean over
	-- orders
	IF draws > 0 THEN
		EXECUTE format($q$
			WITH q AS MATERIALIZED (SELECT array_agg(r.* ORDER BY row_to_json(r.*)::text) AS rows
				FROM %1$s r WHERE r.%2$I IS NOT NULL),
			d AS MATERIALIZED (SELECT s.draw, s.ord, s.y, q.rows[s.ord] AS r
				FROM q, LATERAL posterior.sample($1, q.rows, $2, $3) s)
			SELECT avg(played - averaged) FROM (
				SELECT posterior.log_density($1, d.y, d.r ORDER BY d.ord) AS played,
					posterior.log_density_averaged($1, $4, $3, d.y, d.r) AS averaged FROM d
					GROUP BY d.draw) k$q$,
			relation, defined.target) INTO kl_gap USING context, draws, seed, orders;
	END IF;
END $$;
COMMENT ON FUNCTION posterior.order_gap(text, regclass, integer, integer, bigint)
	IS
		'how far joint answers for rows depend on their order: on observed values, and as a '
		'divergence on the model''s own draws';

CREATE FUNCTION posterior_internal.predict_watched(context name, "row" anyelement)
	RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_predict_watched' LANGUAGE C STABLE STRICT COST 10000;
COMMENT ON FUNCTION posterior_internal.predict_watched(name, anyelement) IS
	'posterior.predict within the trigger of a watched table, by one encoding for a statement';

-- What a context says of a new row before it is there. This function and those that the triggers
-- call are stable: they see what the statement's snapshot shows, so rows of one statement are not
-- told from each other. NULL where the target is missing, or the context has too few rows yet; and
-- with a warning where the context is gone, or a cell is NaN: to watch a table must not keep rows
-- out of it. kind: number, label or padded label.
CREATE FUNCTION posterior_internal.watch_row(context text, target text, kind text,
	"row" anyelement, OUT value float8, OUT label text, OUT surprise float8,
		OUT prediction posterior.distribution)
	LANGUAGE plpgsql STABLE SET extra_float_digits = 1 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	cells jsonb := to_jsonb("row");
	outcome text := cells ->> target;
	trouble text;
BEGIN
	-- a column that has another name by now, which the context knows
	IF NOT cells ? target THEN
		SELECT cells ->> c.target INTO outcome FROM posterior.contexts c WHERE c.name = context;
	END IF;
	IF outcome IS NULL THEN
		RETURN;
	END IF;
	BEGIN
		IF kind = 'number' THEN
			value := outcome::float8;
		ELSE
			label := CASE kind WHEN 'padded label' THEN rtrim(outcome, ' ') ELSE outcome END;
		END IF;
		prediction := posterior_internal.predict_watched(context::name, "row");
		surprise := CASE kind WHEN 'number' THEN posterior.surprise(prediction, value)
			ELSE posterior.surprise(prediction, label) END;
	EXCEPTION
		WHEN object_not_in_prerequisite_state OR no_data_found THEN
			prediction := NULL;
		WHEN undefined_object OR undefined_column OR data_exception OR program_limit_exceeded
			OR datatype_mismatch OR feature_not_supported OR system_error THEN
			prediction := NULL;
			GET STACKED DIAGNOSTICS trouble = MESSAGE_TEXT;
			RAISE WARNING 'a new row is not told its surprise: %', trouble
				USING HINT = format('SELECT posterior.unwatch(%L) ends the watch.', context);
	END;
END $$;
COMMENT ON FUNCTION posterior_internal.watch_row(text, text, text, anyelement) IS
	'surprise of a row that is about to be inserted';

CREATE FUNCTION posterior_internal.watch_trigger(kind text, context text) RETURNS name
	LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN whole::name::text = whole THEN whole
		ELSE format('posterior_%s_%s', kind, md5(context)) END::name
	FROM format('posterior_%s_%s', kind, context) whole
$$;
COMMENT ON FUNCTION posterior_internal.watch_trigger(text, text) IS
	'name of a trigger of a watched context, by a digest where the context''s has no room in it';

-- arguments: context, target, column, kind of the target
CREATE FUNCTION posterior_internal.watch_insert() RETURNS trigger
	AS 'MODULE_PATHNAME', 'posterior_watch_row' LANGUAGE C;
COMMENT ON FUNCTION posterior_internal.watch_insert() IS
	'trigger of watched tables: sets the surprise of a new row';
CREATE FUNCTION posterior_internal.watch_insert_told() RETURNS trigger
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = TG_RELID AND attname = TG_ARGV[2]
			AND NOT attisdropped) THEN
		RAISE WARNING 'a new row is not told its surprise: relation % has no column "%"',
			TG_RELID::regclass, TG_ARGV[2] USING HINT = format('SELECT posterior.unwatch(%L) ends '
			'the watch, posterior.watch(%1$L, ''column'') begins another.', TG_ARGV[0]);
		RETURN NEW;
	END IF;
	RETURN jsonb_populate_record(NEW, jsonb_build_object(TG_ARGV[2],
		(posterior_internal.watch_row(TG_ARGV[0], TG_ARGV[1], TG_ARGV[3], NEW)).surprise));
END $$;
COMMENT ON FUNCTION posterior_internal.watch_insert_told() IS
	'what watch_insert does with a row';

CREATE FUNCTION posterior_internal.watch_write(record text, row_key jsonb, at timestamptz,
	value float8, label text, surprise float8, prediction posterior.distribution) RETURNS void
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	EXECUTE format('INSERT INTO %s (row_key, at, value, label, surprise, prediction)
		VALUES ($1, $2, $3, $4, $5, $6)', record)
	USING row_key, at, value, label, surprise, prediction;
END $$;
COMMENT ON FUNCTION posterior_internal.watch_write(text, jsonb, timestamptz, float8, text, float8,
	posterior.distribution) IS 'write what a watch tells of a row';

-- arguments: context, target, its kind, table, column of the time or an empty string, key
CREATE FUNCTION posterior_internal.watch_record() RETURNS trigger
	AS 'MODULE_PATHNAME', 'posterior_watch_row' LANGUAGE C;
COMMENT ON FUNCTION posterior_internal.watch_record() IS
	'trigger of watched tables: records the surprise of a new row in another table';
CREATE FUNCTION posterior_internal.watch_record_told() RETURNS trigger
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	r jsonb := to_jsonb(NEW);
	told record;
BEGIN
	SELECT * INTO told
		FROM posterior_internal.watch_row(TG_ARGV[0], TG_ARGV[1], TG_ARGV[2], NEW);
	IF to_regclass(TG_ARGV[3]) IS NULL THEN
		RAISE WARNING 'the surprise of a new row is not recorded: there is no table %', TG_ARGV[3]
			USING HINT = format('SELECT posterior.unwatch(%L) ends the watch.', TG_ARGV[0]);
		RETURN NEW;
	END IF;
	-- a function of its own, as a stable one writes nothing
	PERFORM posterior_internal.watch_write(TG_ARGV[3],
		(SELECT jsonb_object_agg(k, r -> k) FROM unnest(TG_ARGV[5]::text[]) k),
		CASE WHEN TG_ARGV[4] <> '' THEN (r ->> TG_ARGV[4])::timestamptz ELSE now() END,
		told.value, told.label, told.surprise, told.prediction);
	RETURN NEW;
END $$;
COMMENT ON FUNCTION posterior_internal.watch_record_told() IS
	'what watch_record does with a row';

CREATE FUNCTION posterior.watch(context text, "column" text DEFAULT NULL,
	threshold float8 DEFAULT 0.01, leave_out boolean DEFAULT false, into_table text DEFAULT NULL,
		key text[] DEFAULT NULL, "time" text DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	defined posterior.contexts := posterior_internal.context_row(context);
	number boolean := posterior_internal.target_is_number(defined.relation, defined.target)
		AND (SELECT m.classes IS NULL FROM posterior.models m WHERE m.name = defined.model);
	kind text := CASE WHEN number THEN 'number'
		WHEN posterior_internal.base_type(posterior_internal.check_column(defined.relation,
			defined.target, 'target')) = 'bpchar'::regtype THEN 'padded label' ELSE 'label' END;
	-- a column, unless another table was asked for
	named text := coalesce("column", CASE WHEN into_table IS NULL THEN 'surprise' END);
	home name;
	record text;
	condition text;
	pattern text;
	there text[];
	wrong text;
BEGIN
	IF threshold IS NULL OR NOT (threshold > 0 AND threshold <= 1) THEN
		RAISE EXCEPTION 'threshold must be above 0 and at most 1'
			USING ERRCODE = 'numeric_value_out_of_range',
			DETAIL = format('It is %s.', coalesce(threshold::text, 'NULL')),
			HINT =
			'threshold => 0.01 tells outcomes so far out that one in a hundred is by chance.';
	END IF;
	SELECT n.nspname INTO home FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = defined.relation AND c.relkind IN ('r', 'p');
	IF home IS NULL THEN
		RAISE EXCEPTION 'only a table can be watched' USING ERRCODE = 'wrong_object_type',
			DETAIL = format('Context "%s" is of %s.', context, defined.relation),
			HINT = 'posterior.detect_anomalies finds surprising rows of any relation.';
	END IF;
	SELECT a.attname INTO wrong FROM pg_attribute a
	WHERE a.attrelid = defined.relation AND a.attgenerated <> '' AND NOT a.attisdropped
		AND (a.attname = defined.target OR a.attname = ANY (defined.features))
	ORDER BY a.attnum LIMIT 1;
	IF wrong IS NOT NULL THEN
		RAISE EXCEPTION 'a context of the generated column "%" cannot be watched', wrong
			USING ERRCODE = 'feature_not_supported',
			DETAIL = 'It is computed after a row has been told its surprise.',
			HINT = 'Make the context of the columns that it is computed from.';
	END IF;
	IF leave_out AND named IS NULL THEN
		RAISE EXCEPTION 'rows are left out of a context by a column of their own table'
			USING ERRCODE = 'invalid_parameter_value',
			HINT = 'Name one as well, as in "column" => ''surprise''.';
	END IF;
	IF "time" IS NOT NULL
		AND posterior_internal.time_kind(defined.relation, "time") = 'integer' THEN
		RAISE EXCEPTION 'column "%" is no point in time', "time"
			USING ERRCODE = 'datatype_mismatch',
			HINT = 'Leave it out: the row is then recorded with the time of its transaction.';
	END IF;
	IF into_table IS NOT NULL THEN
		BEGIN
			PERFORM parse_ident(into_table);
		EXCEPTION WHEN invalid_parameter_value THEN
			RAISE EXCEPTION 'into_table is no name of a table: %', into_table
				USING ERRCODE = 'invalid_name',
				HINT = 'It is written as in SQL: schema.name, and "in quotes" where it has to be.';
		END;
		-- beside the watched table, where it names no schema
		record := CASE WHEN cardinality(parse_ident(into_table)) > 1 THEN into_table
			ELSE format('%I.%s', home, into_table) END;
		IF to_regclass(record) IS NULL THEN
			EXECUTE format('CREATE TABLE %s (row_key jsonb NOT NULL, at timestamptz, value float8,
				label text, surprise float8, prediction posterior.distribution)', record);
		END IF;
		SELECT string_agg(e.name, ', ' ORDER BY e.name) INTO wrong
		FROM (VALUES ('row_key', 'jsonb'::regtype), ('at', 'timestamptz'), ('value', 'float8'),
			('label', 'text'), ('surprise', 'float8'),
			('prediction', 'posterior.distribution')) e (name, type)
		WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = record::regclass
			AND a.attname = e.name AND a.atttypid = e.type AND NOT a.attisdropped);
		IF wrong IS NOT NULL OR record::regclass = defined.relation THEN
			RAISE EXCEPTION 'table % cannot take what is told of new rows', record::regclass
				USING ERRCODE = 'datatype_mismatch',
				DETAIL = format('It lacks %s.', coalesce(wrong, 'a table of its own')),
				HINT = 'Name a table that does not exist yet: it is made.';
		END IF;
		EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT ON %s FOR EACH ROW
			EXECUTE FUNCTION posterior_internal.watch_record(%L, %L, %L, %L, %L, %L)',
			posterior_internal.watch_trigger('record', context), defined.relation, context,
			defined.target, kind, record, coalesce("time", ''),
			posterior_internal.key_columns(defined.relation, key, defined.features));
	END IF;
	IF named IS NULL THEN
		RETURN;
	END IF;
	IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = defined.relation AND attname = named
		AND NOT attisdropped) THEN
		EXECUTE format('ALTER TABLE %s ADD COLUMN %I float8', defined.relation, named);
	ELSIF posterior_internal.base_type(posterior_internal.check_column(defined.relation, named,
		'column of the surprise')) <> 'float8'::regtype THEN
		RAISE EXCEPTION 'column "%" is not of type double precision', named
			USING ERRCODE = 'datatype_mismatch',
			HINT = 'Name a column that does not exist yet: it is added.';
	END IF;
	IF named = defined.target OR named = ANY (defined.features) THEN
		RAISE EXCEPTION 'column "%" is one of the context''s', named
			USING ERRCODE = 'invalid_parameter_value',
			DETAIL = 'What is told of a row must not be what it is told from.',
			HINT = 'Name another column, and name the features when you create the context.';
	END IF;
	-- columns of a partition key depend on their table, those in its expressions as well
	IF EXISTS (SELECT FROM pg_partition_tree(defined.relation) part
			JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = part.relid
				AND d.refclassid = d.classid AND d.refobjid = d.objid AND d.refobjsubid = 0
				AND d.deptype = 'i'
			JOIN pg_attribute a ON a.attrelid = d.objid AND a.attnum = d.objsubid
		WHERE a.attname = named) THEN
		RAISE EXCEPTION 'column "%" decides which partition a row is of', named
			USING ERRCODE = 'invalid_parameter_value',
			DETAIL = 'It is set when the partition has been chosen.', HINT = 'Name another column.';
	END IF;
	EXECUTE
		format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT ON %s FOR EACH ROW
			EXECUTE FUNCTION posterior_internal.watch_insert(%L, %L, %L, %L)',
			posterior_internal.watch_trigger('watch', context), defined.relation, context,
			defined.target, named, kind);
	IF leave_out THEN
		condition := '((%1$I IS NULL) OR (%1$I >= %2$L::double precision))';
		-- the same condition that an earlier watch has made, with whatever threshold
		pattern := regexp_replace(format(condition, named, 0), '([^[:alnum:] ])', E'\\\\\\1', 'g');
		pattern := replace(pattern, E'\\''0\\''', '''([^'']*)''');
		condition := format(condition, named, threshold);
		there := regexp_match(defined.filter, pattern);
		IF defined.filter IS NULL THEN
			PERFORM posterior.alter_context(context, filter => condition);
		ELSIF there IS NULL THEN
			PERFORM posterior.alter_context(context,
				filter => format('(%s) AND %s', defined.filter, condition));
		ELSIF there[1]::float8 <> threshold THEN
			PERFORM posterior.alter_context(context,
				filter => regexp_replace(defined.filter, pattern, replace(condition, E'\\',
				E'\\\\')));
		END IF;
	END IF;
END $$;
COMMENT ON FUNCTION posterior.watch(text, text, float8, boolean, text, text[], text) IS
	'have every row that is inserted into a context''s table tell its surprise in a column or in '
	'another table, and leave surprising ones out of the context if asked';

CREATE FUNCTION posterior_internal.watch_triggers(context text, OUT kind text,
	OUT relation regclass, OUT name name, OUT definition text)
	RETURNS SETOF record
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT k, t.tgrelid::regclass, t.tgname, pg_get_triggerdef(t.oid)
	FROM (VALUES ('watch', 'posterior_internal.watch_insert()'::regprocedure),
			('record', 'posterior_internal.watch_record()')) u (k, f)
		JOIN pg_trigger t
			-- those of partitions go with that of their parent
			ON t.tgfoid = f AND t.tgname = posterior_internal.watch_trigger(k, context)
				AND t.tgparentid = 0
$$;
COMMENT ON FUNCTION posterior_internal.watch_triggers(text) IS
	'triggers that posterior.watch has made for a context';

-- The triggers of a watched table when its context is dropped, or has another name.
CREATE FUNCTION posterior_internal.watch_follows(relation regclass, context text, new_name text)
	RETURNS void
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	t record;
	head text;
	first text;
BEGIN
	FOR t IN SELECT w.* FROM posterior_internal.watch_triggers(context) w
		WHERE w.relation = watch_follows.relation LOOP
		head := format('CREATE TRIGGER %I ', t.name);
		first := format('posterior_internal.watch_%s(%L', CASE t.kind WHEN 'watch' THEN 'insert'
			ELSE t.kind END, context);
		EXECUTE format('DROP TRIGGER %I ON %s', t.name, t.relation);
		IF new_name IS NOT NULL AND starts_with(t.definition, head)
			AND position(first IN t.definition) > 0 THEN
			EXECUTE format('CREATE TRIGGER %I ', posterior_internal.watch_trigger(t.kind, new_name))
				|| overlay(substr(t.definition, length(head) + 1)
					PLACING replace(first, quote_literal(context), quote_literal(new_name))
					FROM position(first IN substr(t.definition, length(head) + 1))
					FOR length(first));
		END IF;
	END LOOP;
END $$;
COMMENT ON FUNCTION posterior_internal.watch_follows(regclass, text, text) IS
	'drop the triggers of a watched table, or have them name a context by its new name';

CREATE FUNCTION posterior.unwatch(context text) RETURNS void
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	t record;
	any_left boolean := false;
BEGIN
	FOR t IN SELECT w.* FROM posterior_internal.watch_triggers(context) w LOOP
		any_left := true;
		EXECUTE format('DROP TRIGGER %I ON %s', t.name, t.relation);
	END LOOP;
	-- a context that is gone may have left triggers, else its name is wrong
	IF NOT any_left THEN
		PERFORM posterior_internal.context_row(context);
	END IF;
END $$;
COMMENT ON FUNCTION posterior.unwatch(text) IS
	'drop the triggers that posterior.watch has made; the column, the table and the filter stay';
