-- calls of posterior.predict are answered in blocks, with the answers of single calls
\set VERBOSITY terse
SET posterior.model = 'tabular_small';
CREATE SCHEMA batch;
SET search_path = batch, public;
CREATE TABLE t AS SELECT i, sin(i / 4.0) + i / 50.0 AS y, i / 10.0 AS x, cos(i)::float8 AS z
	FROM generate_series(4, 60, 4) i;
CREATE TABLE q AS SELECT i, i / 7.0 AS x, CASE WHEN i % 9 > 0 THEN sin(i)::float8 END AS z
	FROM generate_series(1, 300) i;
CREATE TYPE batch_row AS (x numeric, z float8);
CREATE TABLE c AS SELECT g, posterior.context(y + g, x, z ORDER BY i) AS ctx
	FROM t, generate_series(0, 1) g GROUP BY g;
ANALYZE t, q, c;
SELECT posterior.create_context('batch', 't', target => 'y', features => '{x,z}', order_by => 'i',
		model => 'tabular_small');

-- plans, without the parts that versions write differently
CREATE FUNCTION plan(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		RETURN NEXT line;
	END LOOP;
END $$;
-- whether rows and their order are the same with and without
CREATE FUNCTION agree(statement text) RETURNS TABLE (batched boolean, rows bigint, agree boolean)
	LANGUAGE plpgsql AS $$
DECLARE batched_rows text[]; single_rows text[];
BEGIN
	SET LOCAL posterior.batch_calls = on;
	SELECT bool_or(p LIKE '%Posterior Batch%') INTO batched FROM plan(statement) p;
	EXECUTE 'SELECT array_agg(s::text) FROM (' || statement || ') s' INTO batched_rows;
	SET LOCAL posterior.batch_calls = off;
	EXECUTE 'SELECT array_agg(s::text) FROM (' || statement || ') s' INTO single_rows;
	rows := cardinality(batched_rows);
	agree := batched_rows IS NOT DISTINCT FROM single_rows;
	RETURN NEXT;
END $$;

-- target lists, filters, LATERAL, aggregates, joins
SET max_parallel_workers_per_gather = 0;
SELECT plan($$SELECT i, posterior.mean(posterior.predict('batch', q)),
		posterior.stddev(posterior.predict('batch', q)) FROM q$$);
SELECT * FROM agree($$SELECT i, posterior.mean(posterior.predict('batch', q)),
		posterior.stddev(posterior.predict('batch', q)) FROM q$$);
SELECT plan($$SELECT i FROM q WHERE z > 0 AND posterior.mean(posterior.predict('batch', q)) > 1$$);
SELECT * FROM agree($$SELECT i FROM q
		WHERE z > 0 AND posterior.mean(posterior.predict('batch', q)) > 1$$);
SELECT plan($$SELECT i, posterior.mean(p) FROM q, posterior.predict('batch', q) p
		WHERE posterior.mean(p) > 1$$);
SELECT * FROM agree($$SELECT i, posterior.mean(p), p FROM q, posterior.predict('batch', q) p
		WHERE posterior.mean(p) > 1$$);
SELECT * FROM agree($$SELECT i, posterior.mean(p) FROM q LEFT
		JOIN posterior.predict('batch', q) p ON true ORDER BY i DESC$$);
SELECT * FROM agree($$SELECT g, avg(posterior.mean(posterior.predict(ctx, x, z))), count(*)
		FROM c, q GROUP BY g ORDER BY g$$);
SELECT * FROM agree($$SELECT i, g, posterior.mean(p) FROM q, c, posterior.predict(ctx, x, z) p
		ORDER BY i, g$$);
SELECT * FROM agree($$SELECT i, posterior.mean(a) - posterior.mean(b)
		FROM q, c, posterior.predict(ctx, x, z) a, posterior.predict('batch', q) b WHERE g = 0$$);
SELECT * FROM agree($$SELECT i, posterior.predict('batch', to_jsonb(q)) FROM q$$);
SELECT * FROM agree($$SELECT i, (SELECT posterior.mean(posterior.predict(ctx, q.x, q.z)) FROM c
			WHERE g = q.i % 2) FROM q$$);
SELECT * FROM agree($$SELECT i, posterior.mean(posterior.predict('batch', s))
		FROM (SELECT i, x, z FROM q ORDER BY z, i LIMIT 40) s$$);
SELECT * FROM agree($$WITH p AS MATERIALIZED (SELECT i, posterior.predict('batch', q) AS d FROM q)
		SELECT i, posterior.mean(d) FROM p UNION ALL SELECT -i, posterior.stddev(d) FROM p$$);

-- a NULL context or row has no answer; so has every row of an outer join without a partner
SELECT * FROM agree($$SELECT q.i, posterior.predict(ctx, q.x, q.z) IS NULL FROM q LEFT
		JOIN c ON g = q.i$$);
SELECT * FROM agree($$SELECT q.i, posterior.predict('batch', t) IS NULL FROM q LEFT
		JOIN t USING (i)$$);

-- contexts that change from row to row
SELECT * FROM agree($$SELECT q.i, posterior.mean(posterior.predict(ctx, q.x, q.z)) FROM q
		JOIN c ON g = q.i % 2 ORDER BY q.i$$);

-- less than a block of rows shows what follows
DELETE FROM q WHERE i > 120;
ANALYZE q;

-- what is computed for some rows only is left to them, and so is what may differ from row to row
SELECT plan($$SELECT CASE WHEN z > 0 THEN posterior.mean(posterior.predict('batch', q))
		END FROM q$$);
SELECT plan($$SELECT avg(posterior.mean(posterior.predict('batch', q)))
		FILTER (WHERE z > 0) FROM q$$);
SELECT plan($$SELECT posterior.mean(posterior.predict('batch', q)), random() FROM q$$);
SELECT plan($$SELECT posterior.mean(posterior.predict('batch', q)) FROM q FOR UPDATE$$);
SELECT plan($$UPDATE q SET z = posterior.mean(posterior.predict('batch', q))$$);
SELECT plan($$SELECT posterior.mean(posterior.predict('batch', ROW(1)::record))$$);
-- a policy that predicts comes before functions that could tell of rows, and before other calls
CREATE FUNCTION tell(value float8) RETURNS float8 LANGUAGE plpgsql STABLE COST 0.1 AS $$
BEGIN
	RAISE NOTICE 'told of %', value;
	RETURN value;
END $$;
CREATE TABLE secret AS SELECT i, x, z FROM q WHERE i <= 6;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY low ON secret USING (i = 1
	OR posterior.mean(posterior.predict('batch', ROW(x, z)::batch_row)) > 1000);
CREATE POLICY high ON secret AS RESTRICTIVE
	USING (posterior.mean(posterior.predict('batch', secret)) > -1000 AND i < 3);
CREATE VIEW visible WITH (security_barrier) AS SELECT * FROM q
	WHERE i <= 3 AND posterior.mean(posterior.predict('batch', q)) > -1000;
CREATE ROLE batch_reader;
GRANT USAGE ON SCHEMA batch, posterior TO batch_reader;
GRANT SELECT ON secret, t, visible TO batch_reader;
SET ROLE batch_reader;
SELECT i, posterior.mean(posterior.predict('batch', s)) = tell(i) AS never
	FROM secret s WHERE tell(i) > 0;
SELECT i FROM secret s
	WHERE posterior.mean(posterior.predict('batch', ROW(tell(i), z)::batch_row)) > 0;
-- nor does a call in LATERAL, in an aggregate, or above a view that is a barrier
SELECT i, posterior.mean(p) = tell(i) AS never FROM secret s, posterior.predict('batch', s) p
	WHERE tell(i) > 0 AND posterior.mean(p) > -1000;
SELECT count(posterior.predict('batch', s)) FROM secret s WHERE tell(i) > 0;
SELECT count(*) FROM visible v WHERE posterior.mean(posterior.predict('batch', v)) > tell(-v.i);
RESET ROLE;
REVOKE ALL ON SCHEMA batch, posterior FROM batch_reader;
REVOKE ALL ON secret, t, visible FROM batch_reader;

-- rows that policies hide are hidden in both ways
CREATE TABLE mine AS SELECT i, x, z, CASE WHEN i % 2 = 0 THEN 'batch_owner' ELSE 'nobody' END
	AS owner FROM q;
ALTER TABLE mine ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON mine USING (owner = current_user);
CREATE ROLE batch_owner;
GRANT USAGE ON SCHEMA batch, posterior TO batch_owner;
GRANT SELECT ON mine, t, c TO batch_owner;
SET ROLE batch_owner;
SELECT * FROM agree($$SELECT i, posterior.mean(posterior.predict('batch', m)) FROM mine m$$);
SELECT * FROM agree($$SELECT i, posterior.mean(p) FROM mine m, posterior.predict('batch', m) p
		WHERE posterior.mean(p) > -1000$$);
SELECT * FROM agree($$SELECT count(posterior.predict(ctx, x, z)) FROM mine, c WHERE g = 0$$);
SELECT * FROM agree($$SELECT m.i, a.i, posterior.mean(posterior.predict('batch', m)) FROM mine m
		JOIN mine a ON a.i = m.i + 2$$);
RESET ROLE;
REVOKE ALL ON mine, t, c FROM batch_owner;
REVOKE ALL ON SCHEMA batch, posterior FROM batch_owner;
DROP TABLE mine;
DROP ROLE batch_owner;

-- with another call beside it that need not wait
SELECT * FROM agree($$SELECT i, CASE WHEN z > 0 THEN posterior.mean(posterior.predict('batch', q))
		END, posterior.mean(posterior.predict('batch', q)) FROM q$$);

-- INSERT ... SELECT, prepared statements, PL/pgSQL, cursors
CREATE TABLE p AS SELECT i, posterior.mean(posterior.predict('batch', q)) AS m FROM q;
INSERT INTO p SELECT -i, posterior.mean(posterior.predict('batch', q)) FROM q;
SELECT count(*), count(DISTINCT m) FROM p;
PREPARE above(float8) AS SELECT count(*) FROM q
	WHERE posterior.mean(posterior.predict('batch', q)) > $1;
EXECUTE above(0);
EXECUTE above(1);
DO $$
DECLARE r record; n int := 0;
BEGIN
	FOR r IN SELECT q.i, posterior.mean(posterior.predict('batch', q)) AS m FROM q LOOP
		n := n + (r.m IS NOT NULL)::int;
		EXIT WHEN n = 5;
	END LOOP;
	RAISE NOTICE '% rows', n;
END $$;
BEGIN;
DECLARE back SCROLL CURSOR FOR SELECT i, posterior.predict('batch', q) IS NULL FROM q ORDER BY i;
FETCH 2 FROM back;
FETCH BACKWARD 1 FROM back;
COMMIT;

-- EXPLAIN tells what a node did
CREATE FUNCTION told(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text; requests int;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) '
		|| statement LOOP
		IF line ~ '(Model|Context Rows|Predictions):' THEN RETURN NEXT trim(line); END IF;
		-- without the cache every row has an encoding of its own
		IF line ~ 'Requests:' AND current_setting('posterior.cache') <> 'off'
			THEN requests := substring(line, '[0-9]+')::int; END IF;
	END LOOP;
	RETURN NEXT 'few requests: ' || (coalesce(requests, 0) <= 10);
END $$;
SELECT told($$SELECT posterior.predict('batch', q) FROM q$$);
SELECT told($$SELECT posterior.predict('batch', q) FROM q LIMIT 5$$);

-- in every format; of two calls in one node each has its figures, and no object has a key twice
CREATE FUNCTION told_json(statement text, OUT node text, OUT calls jsonb, OUT keys_once boolean)
	RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) '
		|| statement INTO plan;
	RETURN QUERY
		WITH RECURSIVE n (o) AS (SELECT plan -> 0 -> 'Plan'
			UNION ALL SELECT p FROM n, json_array_elements(n.o -> 'Plans') p)
		SELECT o ->> 'Custom Plan Provider',
			(SELECT jsonb_agg(c - 'Requests' - 'Encodings Made')
				FROM jsonb_array_elements((o -> 'Calls')::jsonb) c),
			(SELECT count(*) = count(DISTINCT k) FROM json_object_keys(o) k)
			AND (SELECT bool_and((SELECT count(*) = count(DISTINCT k) FROM json_object_keys(c) k))
				FROM json_array_elements(o -> 'Calls') c)
		FROM n WHERE o ->> 'Node Type' = 'Custom Scan';
END $$;
SELECT * FROM told_json($$SELECT posterior.predict('batch', q), posterior.predict(ctx, q.x, q.z)
	FROM q, c WHERE g = 0$$);
SELECT * FROM told_json($$SELECT posterior.mean(p) FROM q, posterior.predict('batch', q) p$$);
CREATE FUNCTION told_in(format text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT '
		|| format || ') SELECT posterior.predict(''batch'', q) FROM q' LOOP
		RETURN QUERY SELECT trim(l) FROM regexp_split_to_table(line, '\n') l
			WHERE l ~ '(Provider|Calls|<.?Call>|Model|Context.Rows|Predictions)';
	END LOOP;
END $$;
SELECT told_in('XML');
SELECT told_in('YAML');
SELECT told_in('TEXT');

-- whether it has encoded, and for how long: all of it the first time, nothing the second
CREATE FUNCTION encoded(statement text) RETURNS SETOF text LANGUAGE plpgsql
	SET posterior.cache = on SET posterior.device = cpu AS $$
DECLARE line text; found text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) ' || statement LOOP
		found := substring(line, '(Encodings Made|Encoding Time):');
		IF found IS NOT NULL THEN
			RETURN NEXT found || ': ' || CASE WHEN substring(line, '[0-9.]+')::float8 > 0
				THEN 'some' ELSE 'none' END;
		END IF;
	END LOOP;
END $$;
CREATE TABLE cold AS SELECT posterior.context(y, x, z) AS ctx FROM (SELECT 0.37 * i AS y, i AS x,
	i % 5 AS z FROM generate_series(1, 300) i) r;
SELECT encoded($$SELECT posterior.predict(ctx, i::int, 2) FROM cold, generate_series(1, 20) i$$);
SELECT encoded($$SELECT posterior.predict(ctx, i::int, 2) FROM cold, generate_series(1, 20) i$$);

-- answers about several targets: arrays, and elements by constants, which are there in any case
SELECT posterior.load_model('batch_targets', current_setting('test.models')
	|| '/decoupled_causal.safetensors');
SELECT posterior.create_context('batch targets', 't', target => '{y,i}', features => '{x,z}',
	order_by => 'i', model => 'batch_targets');
SET posterior.model = 'batch_targets';
CREATE TABLE several AS SELECT g, posterior.context(array_fill(y + g, ARRAY[g]), x, z ORDER BY i)
	AS ctx FROM t, generate_series(1, 3) g GROUP BY g;
CREATE VIEW known AS SELECT * FROM q WHERE z IS NOT NULL;
SELECT * FROM agree($$SELECT i, posterior.predict_targets('batch targets', k) FROM known k$$);
SELECT plan($$SELECT i, posterior.mean((posterior.predict_targets('batch targets', q))[1]),
		posterior.mean((posterior.predict_targets('batch targets', q))[2]) FROM q$$);
SELECT * FROM agree($$SELECT i, posterior.mean((posterior.predict_targets('batch targets', k))[1]),
		(posterior.predict_targets('batch targets', k))[2:] FROM known k$$);
SELECT * FROM agree($$SELECT i, (posterior.predict_targets('batch targets', k))[i % 3]
	FROM known k$$);
SELECT * FROM agree($$SELECT g, i, p FROM several, known,
	posterior.predict_targets(ctx, x, z) p ORDER BY g, i$$);
SELECT * FROM agree($$SELECT i, posterior.predict_targets(ctx, x, z) FROM known
	LEFT JOIN several ON g = i ORDER BY i$$);
SELECT * FROM agree($$SELECT g, count(posterior.predict_targets(ctx, x, z)) FROM known, several
	GROUP BY g ORDER BY g$$);
SELECT told($$SELECT posterior.predict_targets('batch targets', k) FROM known k$$);
SELECT posterior.predict('batch targets', k) FROM known k;
SELECT posterior.predict(ctx, x, z) FROM known, several WHERE g = 2;
SELECT posterior.predict_targets('batch targets', q) FROM q;
SET posterior.model = 'tabular_small';
SELECT posterior.drop_context('batch targets'), posterior.drop_model('batch_targets');

-- errors are those of single calls
SELECT posterior.mean(posterior.predict('batch', s)) FROM (SELECT i, x FROM q) s;
SELECT posterior.mean(posterior.predict('nowhere', q)) FROM q;
SELECT posterior.mean(posterior.predict('batch', s))
	FROM (SELECT x, CASE WHEN i = 100 THEN 'NaN' ELSE z END AS z FROM q) s;
CREATE ROLE batch_stranger;
GRANT USAGE ON SCHEMA posterior TO batch_stranger;
GRANT USAGE ON SCHEMA batch TO batch_stranger;
GRANT SELECT ON q TO batch_stranger;
REVOKE EXECUTE ON FUNCTION posterior.predict(name, anyelement) FROM PUBLIC;
SET ROLE batch_stranger;
SELECT posterior.mean(posterior.predict('batch', q)) FROM q;
RESET ROLE;
GRANT EXECUTE ON FUNCTION posterior.predict(name, anyelement) TO PUBLIC;
SET ROLE batch_stranger;
SELECT posterior.mean(posterior.predict('batch', q)) FROM q;
RESET ROLE;
REVOKE ALL ON q FROM batch_stranger;
REVOKE ALL ON SCHEMA batch FROM batch_stranger;
REVOKE ALL ON SCHEMA posterior FROM batch_stranger;
DROP ROLE batch_stranger;

-- parallel plans
\i sql/include/parallel.sql
SELECT * FROM agree($$SELECT count(posterior.predict((SELECT ctx FROM c WHERE g = 0), x, z))
		FROM q$$);
SELECT * FROM agree($$SELECT i,
		posterior.mean(posterior.predict((SELECT ctx FROM c WHERE g = 0), x, z)) FROM q
		ORDER BY i$$);
SELECT * FROM agree($$SELECT i, posterior.mean(posterior.predict('batch', q)) FROM q ORDER BY i$$);
RESET ALL;
SET client_min_messages = warning;
SELECT posterior.drop_context('batch');
DROP SCHEMA batch CASCADE;
DROP ROLE batch_reader;
