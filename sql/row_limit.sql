-- posterior.row_limit: a prediction from too many rows is refused before they are encoded, with
-- what they would cost
SELECT posterior.load_model('transparent', current_setting('test.models')
		|| '/transparent.safetensors');
SELECT posterior.load_model('transparent_limited', current_setting('test.models')
		|| '/transparent_limited.safetensors');
CREATE TABLE t (i int PRIMARY KEY, y float8, x float8, label text);
INSERT INTO t SELECT i, sin(i), cos(i), CASE WHEN i % 2 = 0 THEN 'even' ELSE 'odd' END
	FROM generate_series(1, 30) i;
ANALYZE t;
SET posterior.model = 'toy';
SET posterior.class_model = 'tabular_class';
SHOW posterior.row_limit;

-- context values: the aggregate makes a value of any number of rows, a question about them has the
-- limit
SET posterior.row_limit = 29;
CREATE TABLE c AS SELECT posterior.context(y, x) AS ctx,
	posterior.class_context(label, x) AS lab FROM t;
SELECT posterior.rows(ctx) FROM c;
SELECT posterior.predict(ctx, 0.5) FROM c;
SELECT posterior.predict(lab, 0.5) FROM c;
\set VERBOSITY sqlstate
SELECT posterior.predict(ctx, 0.5) FROM c;
\set VERBOSITY terse
SELECT * FROM c, posterior.predict_rows(ctx, ARRAY[0.5]);
SELECT * FROM c, posterior.predict_summary(ctx, ARRAY[0.5]);
SELECT * FROM c, posterior.sample(ctx, ARRAY[0.5], 1);
SELECT * FROM c, posterior.sample_labels(lab, ARRAY[0.5], 1);
SELECT posterior.log_density(ctx, 0.1, 0.2) FROM c;
SELECT posterior.log_density_averaged(ctx, 2, 1, 0.1, 0.2) FROM c;
-- the rows of a joint question come after those of the context, each given those before it
SET posterior.row_limit = 31;
SELECT count(*) FROM c, posterior.predict_rows(ctx, ARRAY[0.1, 0.2, 0.3]);
SELECT count(*) FROM c, posterior.sample(ctx, ARRAY[0.1], 5);
SELECT count(*) FROM c, posterior.sample(ctx, ARRAY[0.1, 0.2], 5);
SELECT posterior.log_density(ctx, y, x) IS NOT NULL FROM c, t WHERE i <= 1;
SELECT posterior.log_density(ctx, y, x) FROM c, t WHERE i <= 2;
SELECT posterior.log_density_averaged(ctx, 2, 1, y, x) FROM c, t WHERE i <= 2;
-- frames
SET posterior.row_limit = 10;
SELECT count(d) FROM (SELECT posterior.regress(y, x)
		OVER (ORDER BY i ROWS BETWEEN 10 PRECEDING AND 1 PRECEDING) AS d FROM t) s;
SELECT count(d) FROM (SELECT posterior.regress(y, x)
		OVER (ORDER BY i ROWS BETWEEN 11 PRECEDING AND 1 PRECEDING) AS d FROM t) s;
SELECT count(d) FROM (SELECT posterior.regress(y, x)
		OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d FROM t) s;
SELECT count(d) FROM (SELECT posterior.regress(y, x)
		OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d FROM t LIMIT 11) s;
SELECT posterior.regress(y, x) OVER () FROM t;
SELECT posterior.classify(label, x) OVER () FROM t;
SELECT count(d) FROM (SELECT posterior.regress(CASE WHEN i <= 10 THEN y END, x)
		OVER () AS d FROM t) s;
-- evidence
SELECT posterior.log_evidence(y, x ORDER BY i) FROM t;
SELECT posterior.log_evidence(y, x ORDER BY i) IS NOT NULL FROM t WHERE i <= 10;
SELECT count(e) FROM (SELECT posterior.log_evidence(y, x) OVER (ORDER BY i) AS e FROM t) s;

-- named contexts: one that has too many rows already is made with a warning, unless it has a window
\set VERBOSITY default
SET posterior.row_limit = 29;
SELECT posterior.create_context('n', 't', 'y', features => '{x}', order_by => 'i', model => 'toy');
SELECT posterior.create_context('w', 't', 'y', features => '{x}', order_by => 'i', model => 'toy',
		max_rows => 20);
SELECT posterior.create_context('f', 't', 'y', features => '{x}', order_by => 'i', model => 'toy',
		filter => 'i > 1');
CREATE VIEW v AS SELECT * FROM t;
SELECT posterior.create_context('v', 'v', 'y', features => '{x}', order_by => 'i', model => 'toy');
SELECT posterior.predict('n', t) FROM t WHERE i = 1;
SELECT posterior.kind(posterior.predict('f', t)) FROM t WHERE i = 1;
SELECT posterior.kind(posterior.predict('w', t)) FROM t WHERE i = 1;
SELECT posterior.predict('v', t) FROM t WHERE i = 1;
SELECT posterior.warm_context('n');
\set VERBOSITY terse
SELECT * FROM posterior.predict_rows('n', ARRAY(SELECT t FROM t WHERE i = 1));
SELECT * FROM posterior.sample('n', ARRAY(SELECT t FROM t WHERE i = 1), 1);
SELECT posterior.log_density('n', y, t) FROM t WHERE i = 1;
SELECT posterior.log_density('f', y, t) FROM t WHERE i = 1;
-- a window that is larger than the limit
SET posterior.row_limit = 15;
SELECT posterior.predict('w', t) FROM t WHERE i = 1;
SELECT posterior.alter_context('w', max_rows => 15);
SELECT posterior.kind(posterior.predict('w', t)) FROM t WHERE i = 1;
-- what is in the cache already, encoded under another limit, makes no difference
SET posterior.row_limit = 0;
SELECT posterior.warm_context('n');
SELECT posterior.kind(posterior.predict('n', t)), posterior.kind(posterior.predict(ctx, 0.5))
	FROM t, c WHERE i = 1;
SET posterior.row_limit = 29;
SELECT posterior.predict('n', t) FROM t WHERE i = 1;
SELECT posterior.predict(ctx, 0.5) FROM c;
-- rows that come after those that have been encoded
SET posterior.row_limit = 30;
SELECT posterior.warm_context('n');
INSERT INTO t VALUES (31, 0.1, 0.2, 'odd');
SELECT posterior.predict('n', t) FROM t WHERE i = 1;
BEGIN;
SET LOCAL posterior.row_limit = 31;
SELECT posterior.warm_context('n');
INSERT INTO t VALUES (32, 0.1, 0.2, 'even');
SELECT posterior.predict('n', t) FROM t WHERE i = 1;
ROLLBACK;
-- a call site that goes on under another limit
SET posterior.row_limit = 0;
CREATE TYPE q AS (x float8);
CREATE FUNCTION asked(limits int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	l int;
	kinds text = '';
BEGIN
	FOREACH l IN ARRAY limits LOOP
		PERFORM set_config('posterior.row_limit', l::text, false);
		kinds := kinds || posterior.kind(posterior.predict('n', ROW(0.5)::q)) || ' ';
	END LOOP;
	RETURN kinds;
END $$;
SELECT asked(ARRAY[0, 31, 32]);
SELECT asked(ARRAY[0, 31, 30]);

-- the limit of a model, of its file or the usual one
RESET posterior.row_limit;
SET posterior.model = 'transparent_limited';
SELECT posterior.predict(posterior.context(0::float8, i), 0) FROM t WHERE i <= 11;
SELECT posterior.mean(posterior.predict(posterior.context(0::float8, i), 0)) FROM t WHERE i <= 10;
SET posterior.row_limit = 11;
SELECT posterior.mean(posterior.predict(posterior.context(0::float8, i), 0)) FROM t WHERE i <= 11;
RESET posterior.row_limit;
SET posterior.model = 'transparent';
\set VERBOSITY default
SELECT posterior.predict(posterior.context(0::float8, i % 20), 0) FROM generate_series(1, 20001) i;
CREATE TABLE many AS SELECT 0::float8 AS y, i % 20 AS x FROM generate_series(1, 20001) i;
SELECT posterior.create_context('many', 'many', 'y', features => '{x}', order_by => 'x',
		model => 'transparent');
SELECT posterior.predict('many', m) FROM many m LIMIT 1;
-- the rows are not read to find that they are too many
BEGIN;
SET LOCAL posterior.row_limit = 1000;
SELECT seq_tup_read AS before FROM pg_stat_xact_user_tables WHERE relname = 'many' \gset
SAVEPOINT s;
\set VERBOSITY terse
SELECT posterior.predict('many', q) FROM (SELECT 1 AS x) q;
ROLLBACK TO s;
SELECT seq_tup_read - :before AS read FROM pg_stat_xact_user_tables WHERE relname = 'many';
ROLLBACK;
\set VERBOSITY default
DELETE FROM many WHERE ctid = (SELECT min(ctid) FROM many);
SELECT posterior.alter_context('many', max_rows => 0);

SELECT posterior.drop_context(name) FROM posterior.contexts ORDER BY name;
DROP TABLE t, c, many CASCADE;
DROP FUNCTION asked;
DROP TYPE q;
RESET posterior.model;
RESET posterior.class_model;
SELECT posterior.drop_model('transparent');
SELECT posterior.drop_model('transparent_limited');
-- rows of a model of sums, which has another way out
SET posterior.model = 'tabular_sums';
SELECT posterior.predict(posterior.context(sin(i), i::float8), 1.0::float8)
FROM generate_series(1, 20001) i;
RESET posterior.model;
