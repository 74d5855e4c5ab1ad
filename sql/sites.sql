-- call sites that outlive their statement: whatever the session did in between, they answer for
-- what is visible now
SELECT posterior.load_model('site', current_setting('test.models') || '/incremental.safetensors');
SET posterior.model = 'site';
CREATE TABLE t AS SELECT i, i / 10.0 AS x, sin(i) AS y FROM generate_series(1, 10) i;
CREATE TABLE c AS SELECT posterior.context(y, x, i) AS ctx FROM t;
SELECT posterior.predict(ctx, 0.5, 1) AS incremental FROM c \gset
SET posterior.model = 'tabular_small';
SELECT posterior.predict(ctx, 0.5, 1) AS small FROM c \gset
-- a SET between two uses
CREATE FUNCTION switch(c posterior.context) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	answers text[];
	d posterior.distribution;
BEGIN
	FOREACH d IN ARRAY ARRAY[NULL, NULL, NULL]::posterior.distribution[] LOOP
		PERFORM set_config('posterior.model', CASE WHEN cardinality(answers) = 1 THEN 'site'
				ELSE 'tabular_small' END, true);
		d := posterior.predict(c, 0.5, 1);
		answers := answers || d::text;
	END LOOP;
	RETURN answers;
END $$;
SELECT switch(ctx) = ARRAY[:'small', :'incremental', :'small'] AS switched FROM c;
-- a model that was loaded in a block that is rolled back is not there afterwards
CREATE FUNCTION undo(c posterior.context) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	answers text[];
	answer text;
BEGIN
	PERFORM set_config('posterior.model', 'site', true);
	FOR i IN 1..3 LOOP
		BEGIN
			IF i = 2 THEN
				PERFORM posterior.drop_model('site');
				PERFORM posterior.load_model('site', current_setting('test.models')
						|| '/packed_tnpd.safetensors');
			END IF;
			answer := posterior.predict(c, 0.5, 1)::text;
			IF i = 2 THEN
				RAISE EXCEPTION 'undo';
			END IF;
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
		answers := answers || answer;
	END LOOP;
	RETURN answers;
END $$;
SELECT a[1] = :'incremental' AS first, a[2] <> :'incremental' AS inside,
	a[3] = :'incremental' AS after FROM c, undo(ctx) a;
-- the same with savepoints
SET posterior.model = 'site';
PREPARE ask AS SELECT posterior.predict(ctx, 0.5, 1)::text = $1 AS same FROM c;
BEGIN;
EXECUTE ask(:'incremental');
SAVEPOINT s;
SELECT posterior.drop_model('site');
SAVEPOINT inner_one;
EXECUTE ask(:'incremental');
ROLLBACK TO inner_one;
SELECT posterior.load_model('site', current_setting('test.models') || '/packed_tnpd.safetensors');
EXECUTE ask(:'incremental');
ROLLBACK TO s;
EXECUTE ask(:'incremental');
COMMIT;
-- one call site, many contexts, in a cursor that stays open over changes
BEGIN;
DECLARE w CURSOR FOR SELECT posterior.predict(ctx, 0.5, g)::text = :'incremental' AS same
	FROM c, generate_series(1, 3) g;
FETCH 1 FROM w;
SET LOCAL posterior.model = 'tabular_small';
SELECT posterior.predict(ctx, 0.5, 1)::text = :'small' AS same FROM c;
SET LOCAL posterior.model = 'site';
FETCH 1 FROM w;
CLOSE w;
COMMIT;
-- a value that is larger than a page, stored and toasted, answers as the one just made
CREATE TABLE big AS SELECT g, posterior.context(sin(i + g), i / 10.0, i) AS ctx
	FROM generate_series(1, 500) i, generate_series(1, 3) g GROUP BY g;
SELECT bool_and(posterior.predict(big.ctx, 0.5, 1)::text = posterior.predict(fresh.ctx, 0.5,
			1)::text) AS same, count(DISTINCT posterior.predict(big.ctx, 0.5, 1)) AS answers
FROM big JOIN (SELECT g, posterior.context(sin(i + g), i / 10.0, i) AS ctx
		FROM generate_series(1, 500) i, generate_series(1, 3) g GROUP BY g) fresh USING (g);
-- after DROP EXTENSION and CREATE EXTENSION the session goes on
BEGIN;
DROP FUNCTION switch, undo;
DROP TABLE c, big;
DROP EXTENSION pg_posterior;
CREATE EXTENSION pg_posterior;
SET LOCAL posterior.model = 'tabular_small';
SELECT posterior.predict(posterior.context(y, x, i), 0.5, 1)::text = :'small' AS same FROM t;
ROLLBACK;
SELECT posterior.predict(ctx, 0.5, 1)::text = :'incremental' AS same FROM c;
RESET posterior.model;
SELECT posterior.drop_model('site');
DEALLOCATE ask;
DROP FUNCTION switch, undo;
DROP TABLE t, c, big;
