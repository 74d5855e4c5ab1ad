-- models: loading, dropping, what a session sees
SELECT name, architecture, context, head, features, min_rows, buffer, takes_missing,
	takes_categories, bundled FROM posterior.models ORDER BY name;
SELECT posterior.load_model('mine', current_setting('test.models') || '/incremental.safetensors');
SELECT name, architecture, context, head, features, min_rows, bundled FROM posterior.models
	WHERE NOT bundled;
SELECT posterior.load_model('mine', current_setting('test.models') || '/incremental.safetensors');
CREATE TABLE t AS SELECT i / 10.0 AS x, sin(i) AS y FROM generate_series(1, 10) i;
SET posterior.model = 'mine';
SELECT posterior.predict(posterior.context(y, x, x), 0.5, 1) AS first FROM t \gset
-- a call site that outlives its statement sees another file under the old name
CREATE FUNCTION ask(c posterior.context) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	before text;
	after text;
BEGIN
	FOR i IN 1..2 LOOP
		before := after;
		after := posterior.predict(c, 0.5, 1)::text;
		IF i = 1 THEN
			PERFORM posterior.drop_model('mine');
			PERFORM posterior.load_model('mine', current_setting('test.models')
					|| '/packed_tnpd.safetensors');
		END IF;
	END LOOP;
	RETURN CASE WHEN before <> after THEN 'another model' ELSE 'the same model' END;
END $$;
BEGIN;
SELECT ask(posterior.context(y, x, x)) FROM t;
ROLLBACK;
SELECT posterior.predict(posterior.context(y, x, x), 0.5, 1)::text = :'first' AS as_before FROM t;
SELECT posterior.drop_model('mine');
SELECT posterior.predict(posterior.context(y, x), 0.5) FROM t;
SELECT posterior.drop_model('mine');
SET posterior.model = '';
SELECT posterior.predict(posterior.context(y, x), 0.5) FROM t;
RESET posterior.model;
-- files that are not models
SELECT posterior.load_model('bad', '\x'::bytea);
SELECT posterior.load_model('bad', '\x7b7d'::bytea);
SELECT posterior.load_model('bad', decode('ffffffffffffff7f7b7d', 'hex'));
SELECT posterior.load_model('bad', convert_to('PK' || repeat('x', 100), 'UTF8'));
SELECT posterior.load_model('bad', '\x02000000000000007b7d'::bytea);
SELECT posterior.load_model('bad',
		pg_read_binary_file(current_setting('test.models') || '/incremental.safetensors', 0, 5000));
SELECT posterior.load_model('bad',
		pg_read_binary_file(current_setting('test.models') || '/incremental.safetensors')
		|| '\x00'::bytea);
SELECT posterior.load_model('bad', '/nonexistent/model.safetensors');
SELECT posterior.load_model('bad', 'relative.safetensors');
SELECT posterior.load_model('bad', '/dev/null');
SELECT posterior.load_model('', '/dev/null');
SELECT posterior.load_model(repeat('x', 64), '\x'::bytea);
-- the name of a bundled model is for that model only: a dump leaves it to the extension
BEGIN;
CREATE TABLE files AS SELECT name, file FROM posterior.model_file;
SELECT posterior.drop_model('toy');
\set ON_ERROR_ROLLBACK on
SELECT posterior.load_model('toy', file) FROM files WHERE name = 'gp1d';
\unset ON_ERROR_ROLLBACK
SELECT posterior.load_model('toy', file) FROM files WHERE name = 'toy';
SELECT name, bundled FROM posterior.models WHERE name = 'toy';
ROLLBACK;
-- a wrong number of features, missing values and categories where a model takes none
SET posterior.model = 'gp1d';
SELECT posterior.predict(posterior.context(y, x, x), 1, 1) FROM t;
SELECT posterior.predict(posterior.context(y, NULLIF(x, 0.5)), 1) FROM t;
SELECT posterior.predict(posterior.context(y, x::text), 'a') FROM t;
SELECT posterior.predict(posterior.context(y * 1e300, x), 1) FROM t;
SELECT posterior.predict(posterior.context(y, x * 1e300), 1) FROM t;
-- an empty context: the prior, where the model has one
SELECT abs(posterior.mean(posterior.predict(posterior.context(NULL::float8, x), 0.5))) < 0.5
	AS prior
	FROM t;
SET posterior.model = 'tabular_small';
SELECT posterior.predict(posterior.context(NULL::float8, x), 0.5) FROM t;
-- settings
SET posterior.cache = 'sometimes';
SET posterior.unknown = 1;
SET posterior.kernels = reference;
SELECT posterior.predict(posterior.context(y, x), 0.5) AS slow FROM t \gset
RESET posterior.kernels;
SELECT abs(posterior.mean(posterior.predict(posterior.context(y, x), 0.5))
		- posterior.mean(:'slow')) < 1e-4 AS same FROM t;
DROP FUNCTION ask;
DROP TABLE t;
