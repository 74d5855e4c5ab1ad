-- The tables, contexts and checks of the history checker.
CREATE EXTENSION pg_posterior;
SELECT posterior.load_model(m, current_setting('test.models') || '/' || m || '.safetensors')
	FROM unnest(ARRAY['packed_causal', 'prefix_causal_scaled', 'sums', 'mean_scaled']) m;
ALTER DATABASE postgres SET posterior.model = 'packed_causal';
SET posterior.model = 'packed_causal';

CREATE TABLE h (k int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, x float8, label text, y float8,
		z int NOT NULL DEFAULT 1, u int UNIQUE DEFERRABLE INITIALLY DEFERRED,
		other_y float8 GENERATED ALWAYS AS (1 - y / 2) STORED);
CREATE TABLE other (i int);
CREATE TABLE via (x float8);
CREATE TABLE parent (k int PRIMARY KEY, x float8, label text, y float8);
CREATE TABLE child (PRIMARY KEY (k)) INHERITS (parent);
-- a parent whose children come and go: one for each client, which is its child or is not
CREATE TABLE family (k int GENERATED ALWAYS AS IDENTITY, x float8, y float8);
DO $$ BEGIN
	FOR i IN 0 .. 31 LOOP
		EXECUTE format('CREATE TABLE kid_%s (k int NOT NULL DEFAULT %s, x float8, y float8)',
				i, 1000000 + i);
		EXECUTE format('INSERT INTO kid_%s (x, y) VALUES (random(), random()),
			(random(), random())', i);
	END LOOP;
END $$;
INSERT INTO family (x, y) SELECT random(), random() FROM generate_series(1, 20) i;
-- rows before the checks begin, so that no context ever starts from nothing
INSERT INTO h (x, label, y) SELECT random(), chr(65 + i % 3), random()
	FROM generate_series(1, 20) i;
INSERT INTO child SELECT i, random(), 'A', random() FROM generate_series(1, 20) i;

SELECT posterior.create_context('causal', 'h', 'y', features => '{x,z}', order_by => 'k',
		model => 'packed_causal');
SELECT posterior.create_context('prefix', 'h', 'y', features => '{x,z}', order_by => 'k',
		model => 'prefix_causal_scaled');
SELECT posterior.create_context('window', 'h', 'y', features => '{x,z}', order_by => 'k',
		max_rows => 16, model => 'packed_causal');
SELECT posterior.create_context('filtered', 'h', 'y', features => '{x,z}', order_by => 'k',
		filter => 'x < 0.5', model => 'packed_causal');
SELECT posterior.create_context('by_value', 'h', 'y', features => '{x,z}', order_by => 'x',
		model => 'packed_causal');
SELECT posterior.create_context('read', 'h', 'y', features => '{x,z}', order_by => 'k',
		maintain => 'read', model => 'packed_causal');
SELECT posterior.create_context('altered', 'h', 'y', features => '{x,z}', order_by => 'k',
		model => 'packed_causal');
SELECT posterior.create_context('refreshed', 'h', 'y', features => '{x,z}', order_by => 'k',
		model => 'prefix_causal_scaled');
SELECT posterior.create_context('family', 'family', 'y', features => '{x,k}', order_by => 'k',
		maintain => 'trigger', model => 'packed_causal');
SELECT posterior.create_context('inherited', 'child', 'y', features => '{x,k}', order_by => 'k',
		maintain => 'read', model => 'packed_causal');

SELECT posterior.create_context('near', 'h', 'y', features => '{x,z}', order_by => 'k',
		model => 'packed_causal', neighbours => 8);

INSERT INTO h (x, label, y) SELECT random(), chr(65 + i % 3), random()
	FROM generate_series(1, 40) i;
SELECT posterior.create_context('sums', 'h', 'y', features => '{x,z,label}', model => 'sums',
		filter => 'z < 30');
SELECT posterior.create_context('vectors', 'h', 'y', features => '{x,z}', model => 'mean_scaled',
		maintain => 'sums');
DELETE FROM h WHERE k > 25;

-- One model of each way to keep a context, each a named context of its name. A value of the rows
-- has the same prefix, unless that is shared: then a growing frame has.
CREATE TABLE kind (number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, model text, keeps text,
		shared_prefix boolean, target text DEFAULT 'y');
INSERT INTO kind (model, keeps, shared_prefix) VALUES
	('mean', 'one exact sum, rows are added and taken away', false),
	('incremental', 'keys and values of two streams, appended', false),
	('packed_tnpd', 'keys and values, made again for each row', false),
	('buffered', 'keys, values and states, made again once in K rows', true),
	('latent', 'keys and values of latents, whatever the rows', false),
	('set', 'those of points of each column and of rows, made again once in K rows', true),
	('deep_kernel', 'one sum of products, whatever the rows', false),
	('random_features_causal', 'features and values of rows, appended', true),
	('scan_causal', 'keys, values and positions, appended', false),
	('scan_prefix_causal', 'the same, and a prefix that is made again', true),
	('decoupled_one', 'keys of features, values of targets, appended', true),
	('decoupled_convolution', 'keys, values and streams in order, made again', false),
	('decoupled_lstm', 'keys, values and states of a recurrence, appended', false);
INSERT INTO kind (model, keeps, shared_prefix, target) VALUES
	('decoupled_causal', 'keys of features that two targets share, appended', false,
		'{y,other_y}');
SELECT posterior.load_model(model, current_setting('test.models') || '/' || model || '.safetensors')
	FROM kind;
SELECT posterior.create_context(model, 'h', target, features => '{x,z}', order_by => 'k',
		model => model) FROM kind;

-- how many predictions have been compared: sequences are not rolled back
CREATE SEQUENCE compared;
CREATE FUNCTION compare(name text, questions int, differ bigint, detail text)
	RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF differ > 0 THEN
		RAISE EXCEPTION 'MISMATCH in context %', name USING DETAIL = detail, ERRCODE = 'P0004';
	END IF;
	PERFORM nextval('compared') FROM generate_series(1, questions);
	RETURN questions;
END $$;

-- The questions: the same rows for the named context and for the value.
CREATE FUNCTION questions() RETURNS TABLE (x float8, z int) IMMUTABLE LANGUAGE sql AS
	$$ SELECT i / 5.0, i FROM generate_series(0, 4) i $$;

-- From scratch: nothing of what these answer with was ever in the cache. In PL/pgSQL, because
-- functions in SQL are parsed and planned at every call, which would be half of the work of a
-- history.
CREATE FUNCTION from_scratch(value posterior.context) RETURNS posterior.distribution[] STABLE
	LANGUAGE plpgsql SET posterior.cache = off AS $$
BEGIN
	RETURN (SELECT array_agg(prediction ORDER BY ord)
			FROM posterior.predict_rows(value, ARRAY(SELECT q FROM questions() q)));
END $$;
CREATE FUNCTION sample_from_scratch(value posterior.context) RETURNS float8[] STABLE
	LANGUAGE plpgsql SET posterior.cache = off AS $$
BEGIN
	RETURN (SELECT array_agg(y ORDER BY draw, ord)
			FROM posterior.sample(value, ARRAY(SELECT q FROM questions() q),
				draws => 2, seed => 7));
END $$;
CREATE FUNCTION density_from_scratch(value posterior.context)
	RETURNS float8 STABLE LANGUAGE plpgsql SET posterior.cache = off AS $$
BEGIN
	RETURN (SELECT posterior.log_density(value, q.x, q.x, q.z ORDER BY q.z) FROM questions() q);
END $$;

/*
 * One statement, so one snapshot: predictions from the named context,
 	and from a context value gathered here, compared bit by bit. NULL where there are too
 * few rows. The value of a causal model keeps the order it is gathered in.
 */
CREATE FUNCTION check_causal(name text, lo float8 DEFAULT '-Infinity', hi float8 DEFAULT 'Infinity')
	RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
	result int;
BEGIN
	WITH c AS MATERIALIZED (SELECT posterior.context(y, x, z ORDER BY k, y, x, z) AS value FROM h
			WHERE x > lo AND x < hi),
	d AS (SELECT count(*)
			FILTER (WHERE named.prediction OPERATOR(posterior.<>) scratch.prediction) AS differ,
			count(*) AS n
		FROM posterior.predict_rows(check_causal.name, ARRAY(SELECT q FROM questions() q)) named
		JOIN unnest((SELECT from_scratch(value) FROM c))
			WITH ORDINALITY scratch (prediction, ord) USING (ord))
	SELECT compare(check_causal.name, n::int, differ, CASE WHEN differ > 0
			THEN (SELECT posterior.rows(value)::text FROM c) END) INTO result FROM d;
	RETURN result;
END $$;

CREATE FUNCTION check_by_value() RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
	result int;
BEGIN
	WITH c AS MATERIALIZED (SELECT posterior.context(y, x, z ORDER BY x,
				posterior_internal.row_hash(y, x, z), y, z) AS value FROM h),
	d AS (SELECT count(*)
			FILTER (WHERE named.prediction OPERATOR(posterior.<>) scratch.prediction) AS differ,
			count(*) AS n
		FROM posterior.predict_rows('by_value', ARRAY(SELECT q FROM questions() q)) named
		JOIN unnest((SELECT from_scratch(value) FROM c))
			WITH ORDINALITY scratch (prediction, ord) USING (ord))
	SELECT compare('by_value', n::int, differ, CASE WHEN differ > 0
			THEN (SELECT posterior.rows(value)::text FROM c) END) INTO result FROM d;
	RETURN result;
END $$;

-- The newest rows, as a context with this limit shows them; NULL is no limit.
CREATE FUNCTION newest(most int) RETURNS posterior.context STABLE
	LANGUAGE plpgsql SET posterior.cache = off AS $$
BEGIN
	RETURN (WITH total AS (SELECT count(*) AS n FROM h WHERE y IS NOT NULL),
	newest AS (SELECT * FROM h WHERE y IS NOT NULL ORDER BY k, y, x, z
		OFFSET (SELECT CASE WHEN n > most THEN (n - most + most / 2 - 1) / (most / 2) * (most / 2)
				ELSE 0 END FROM total))
	SELECT posterior.context(y, x, z ORDER BY k, y, x, z) FROM newest);
END $$;

CREATE FUNCTION check_window() RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
	result int;
BEGIN
	WITH c AS MATERIALIZED (SELECT newest(16) AS value),
	d AS (SELECT count(*)
			FILTER (WHERE named.prediction OPERATOR(posterior.<>) scratch.prediction) AS differ,
			count(*) AS n
		FROM posterior.predict_rows('window', ARRAY(SELECT q FROM questions() q)) named
		JOIN unnest((SELECT from_scratch(value) FROM c))
			WITH ORDINALITY scratch (prediction, ord) USING (ord))
	SELECT compare('window', n::int, differ, CASE WHEN differ > 0
			THEN (SELECT posterior.rows(value)::text FROM c) END) INTO result FROM d;
	RETURN result;
END $$;

-- A context whose definition changes: a statement uses the one that its snapshot shows.
CREATE FUNCTION check_altered() RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
	result int;
BEGIN
	WITH c AS MATERIALIZED (SELECT newest(max_rows) AS value FROM posterior.contexts
			WHERE name = 'altered'),
	d AS (SELECT count(*)
			FILTER (WHERE named.prediction OPERATOR(posterior.<>) scratch.prediction) AS differ,
			count(*) AS n
		FROM posterior.predict_rows('altered', ARRAY(SELECT q FROM questions() q)) named
		JOIN unnest((SELECT from_scratch(value) FROM c))
			WITH ORDINALITY scratch (prediction, ord) USING (ord))
	SELECT compare('altered', n::int, differ, CASE WHEN differ > 0
			THEN (SELECT posterior.rows(value)::text FROM c) END) INTO result FROM d;
	RETURN result;
END $$;

CREATE FUNCTION check_inherited() RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
	result int;
BEGIN
	WITH c AS MATERIALIZED (SELECT posterior.context(y, x, k ORDER BY k,
				posterior_internal.row_hash(y, x, k), y, x) AS value FROM child),
	d AS (SELECT count(*)
			FILTER (WHERE named.prediction OPERATOR(posterior.<>) scratch.prediction) AS differ,
			count(*) AS n
		FROM posterior.predict_rows('inherited',
				ARRAY(SELECT q FROM (SELECT x, z AS k FROM questions()) q)) named
		JOIN unnest((SELECT from_scratch(value) FROM c))
			WITH ORDINALITY scratch (prediction, ord) USING (ord))
	SELECT compare('inherited', n::int, differ, CASE WHEN differ > 0
			THEN (SELECT posterior.rows(value)::text FROM c) END) INTO result FROM d;
	RETURN result;
END $$;

CREATE FUNCTION check_family() RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
	result int;
BEGIN
	WITH c AS MATERIALIZED (SELECT posterior.context(y, x, k ORDER BY k,
				posterior_internal.row_hash(y, x, k), y, x) AS value
			FROM family),
	d AS (SELECT count(*)
			FILTER (WHERE named.prediction OPERATOR(posterior.<>) scratch.prediction) AS differ,
			count(*) AS n
		FROM posterior.predict_rows('family',
				ARRAY(SELECT q FROM (SELECT x, z AS k FROM questions()) q)) named
		JOIN unnest((SELECT from_scratch(value) FROM c))
			WITH ORDINALITY scratch (prediction, ord) USING (ord))
	SELECT compare('family', n::int, differ, CASE WHEN differ > 0
			THEN (SELECT posterior.rows(value)::text FROM c) END) INTO result FROM d;
	RETURN result;
END $$;

-- Joint answers: what they append to an encoding must not be seen by others, nor that of others by
-- them.
CREATE FUNCTION check_joint(name text) RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
	result int;
BEGIN
	WITH c AS MATERIALIZED (SELECT posterior.context(y, x, z ORDER BY k, y, x, z) AS value FROM h),
	s AS (SELECT array_agg(y ORDER BY draw, ord) AS y
			FROM posterior.sample(check_joint.name, ARRAY(SELECT q FROM questions() q),
				draws => 2, seed => 7)),
	l AS (SELECT posterior.log_density(check_joint.name, q.x, q ORDER BY q.z) AS density
			FROM questions() q),
	d AS (SELECT CASE WHEN s.y IS DISTINCT FROM sample_from_scratch(value) THEN 1 ELSE 0 END
			+ CASE WHEN density IS DISTINCT FROM density_from_scratch(value) THEN 1 ELSE 0
				END AS differ, cardinality(s.y) + 5 AS n
		FROM c, s, l WHERE value IS NOT NULL)
	SELECT compare(check_joint.name, n, differ, CASE WHEN differ > 0
			THEN (SELECT posterior.rows(value)::text FROM c) END) INTO result FROM d;
	RETURN result;
END $$;

-- A growing frame has the same canonical prefix as a named context of these rows.
CREATE FUNCTION prefix_from_scratch() RETURNS posterior.distribution STABLE
	LANGUAGE sql SET posterior.model = 'prefix_causal_scaled' SET posterior.cache = off AS $$
	WITH r AS (SELECT k, y, x, z FROM h WHERE y IS NOT NULL UNION ALL SELECT 2147483647,
			NULL, 0.3, 3),
	f AS (SELECT k, posterior.regress(y, x, z)
			OVER (ORDER BY k, y, x, z ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS p FROM r)
	SELECT p FROM f WHERE k = 2147483647 $$;
CREATE FUNCTION check_prefix() RETURNS int STABLE LANGUAGE sql AS $$
	WITH f AS MATERIALIZED (SELECT prefix_from_scratch() AS p),
	d AS (SELECT count(*)
			FILTER (WHERE p OPERATOR(posterior.<>) posterior.predict('prefix', q)) AS differ,
			count(*) AS n
		FROM f, (SELECT 0.3::float8 AS x, 3 AS z) q WHERE p IS NOT NULL)
	SELECT compare('prefix', n::int, differ, CASE WHEN differ > 0
			THEN (SELECT count(*)::text FROM h) END) FROM d $$;

-- The kinds of contexts: one of them by its number. A snapshot older than a table's emptying sees
-- no row of it but its own, and set encoders need four.
CREATE FUNCTION kind_from_scratch(model text, shared_prefix boolean, target text)
	RETURNS posterior.distribution[] STABLE LANGUAGE plpgsql
	SET posterior.model = 'packed_causal' SET posterior.cache = off AS $$
BEGIN
	PERFORM set_config('posterior.model', model, true);
	IF shared_prefix THEN
		RETURN (WITH r AS (SELECT k, y, x, z FROM h WHERE y IS NOT NULL
				UNION ALL SELECT 2147483647, NULL, q.x, q.z FROM questions() q WHERE q.z = 2),
			f AS (SELECT k, posterior.regress(y, x, z) OVER (ORDER BY k, y, x, z
					ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS p FROM r)
			SELECT ARRAY[p] FROM f WHERE k = 2147483647);
	END IF;
	IF target <> 'y' THEN
		-- each target as if it were alone
		RETURN (SELECT from_scratch(one) || from_scratch(two) FROM
			(SELECT posterior.context(y, x, z ORDER BY k, y, x, z) AS one,
				posterior.context(other_y, x, z ORDER BY k, y, x, z) AS two FROM h) c);
	END IF;
	RETURN (SELECT from_scratch(value) FROM (SELECT posterior.context(y, x, z ORDER BY k, y, x, z)
			AS value FROM h) c);
END $$;
-- What the context answers, in the order of kind_from_scratch.
CREATE FUNCTION kind_answers(model text, shared_prefix boolean, target text)
	RETURNS posterior.distribution[] STABLE LANGUAGE plpgsql AS $$
BEGIN
	IF target <> 'y' THEN
		RETURN (SELECT array_agg(prediction ORDER BY t, q.z) FROM questions() q,
			unnest(posterior.predict_targets(model::name, q)) WITH ORDINALITY p (prediction, t));
	END IF;
	RETURN (SELECT array_agg(prediction ORDER BY ord)
			FROM posterior.predict_rows(model, ARRAY(SELECT q FROM questions() q
				WHERE NOT shared_prefix OR q.z = 2)));
END $$;
CREATE FUNCTION check_kind(which int) RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
	result int;
BEGIN
	IF (SELECT count(*) < 4 FROM h WHERE y IS NOT NULL) THEN
		RETURN 0;
	END IF;
	WITH t AS MATERIALIZED (SELECT model, shared_prefix, target FROM kind WHERE number = which),
	d AS (SELECT count(*)
			FILTER (WHERE named.prediction OPERATOR(posterior.<>) scratch.prediction) AS differ,
			count(*) AS n
		FROM t, LATERAL unnest(kind_answers(model, shared_prefix, target))
			WITH ORDINALITY named (prediction, ord)
		JOIN LATERAL unnest(kind_from_scratch(model, shared_prefix, target))
			WITH ORDINALITY scratch (prediction, ord) USING (ord))
	SELECT compare((SELECT model FROM t), n::int, differ, CASE WHEN differ > 0
			THEN (SELECT count(*)::text FROM h) END) INTO result FROM d;
	IF result = 0 THEN
		RAISE EXCEPTION 'MISMATCH: kind % was asked nothing', which USING ERRCODE = 'P0004';
	END IF;
	RETURN result;
END $$;

-- A snapshot older than a table's emptying sees no row of it.
CREATE FUNCTION kind_warm(which int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM posterior.warm_context(model) FROM kind WHERE number = which;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
	NULL;
END $$;

-- Of some contexts no value gives the answers: the prefix of one ends by its last refresh, another
-- takes the rows near to each question. So their own rows are read and encoded anew, under the
-- definition and the rows of the same snapshot.
CREATE FUNCTION named_from_scratch(name text) RETURNS posterior.distribution[] STABLE
	LANGUAGE plpgsql SET posterior.cache = off AS $$
BEGIN
	RETURN (SELECT array_agg(prediction ORDER BY ord)
			FROM posterior.predict_rows(named_from_scratch.name,
				ARRAY(SELECT q FROM questions() q)));
END $$;
CREATE FUNCTION check_named(name text) RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
	result int;
BEGIN
	WITH d AS (SELECT count(*)
			FILTER (WHERE named.prediction OPERATOR(posterior.<>) scratch.prediction) AS differ,
			count(*) AS n
		FROM posterior.predict_rows(check_named.name, ARRAY(SELECT q FROM questions() q)) named
		JOIN unnest(named_from_scratch(check_named.name))
			WITH ORDINALITY scratch (prediction, ord) USING (ord))
	SELECT compare(check_named.name, n::int, differ, CASE WHEN differ > 0
			THEN (SELECT count(*)::text FROM h) END) INTO result FROM d;
	RETURN result;
END $$;
CREATE FUNCTION check_refreshed() RETURNS int STABLE LANGUAGE plpgsql AS $$
BEGIN
	RETURN CASE WHEN (SELECT count(*) < 3 FROM h WHERE y IS NOT NULL) THEN 0
		ELSE check_named('refreshed') END;
END $$;

-- Contexts that keep sums, of features or of vectors, have those of the rows, and answer as when
-- these are read.
CREATE FUNCTION sums_from_scratch(context text, basis posterior.context) RETURNS posterior.context
	STABLE LANGUAGE plpgsql SET posterior.model = 'sums' AS $$
BEGIN
	IF context = 'sums' THEN
		RETURN (SELECT posterior.context(basis, y, x, z, label) FROM h WHERE z < 30);
	END IF;
	PERFORM set_config('posterior.model', 'mean_scaled', true);
	RETURN (SELECT posterior.context(basis, y, x, z) FROM h);
END $$;
CREATE FUNCTION sums_answers(context text) RETURNS posterior.distribution[] STABLE
	LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT array_agg(prediction ORDER BY ord) FROM posterior.predict_rows(context,
			ARRAY(SELECT q FROM (SELECT x, z, 'B' AS label FROM questions()) q)));
END $$;
CREATE FUNCTION sums_answers_read(context text) RETURNS posterior.distribution[] STABLE
	LANGUAGE plpgsql SET posterior.cache = off AS $$
BEGIN
	RETURN sums_answers(context);
END $$;
CREATE FUNCTION sums_basis(value posterior.context) RETURNS posterior.context STABLE
	LANGUAGE plpgsql SET posterior.model = 'sums' AS $$
BEGIN
	RETURN posterior.basis(value);
END $$;
CREATE FUNCTION check_sums(context text) RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
	result int;
BEGIN
	-- it may have been altered when there were too few rows
	IF (SELECT basis IS NULL FROM posterior.context_definition d WHERE d.name = context) THEN
		RETURN 0;
	END IF;
	WITH s AS MATERIALIZED (SELECT posterior.sums(context) AS value),
	d AS (SELECT posterior.rows(value) AS rows, CASE WHEN value OPERATOR(posterior.<>)
				coalesce(sums_from_scratch(context, sums_basis(value)), sums_basis(value)) THEN 1
			WHEN posterior.rows(value) > 3
				AND sums_answers(context)::text <> sums_answers_read(context)::text THEN 1
			ELSE 0 END AS differ
		FROM s)
	SELECT compare(context, 6, differ, rows::text) INTO result FROM d;
	RETURN result;
END $$;
CREATE FUNCTION check_sums() RETURNS int STABLE LANGUAGE plpgsql AS $$
BEGIN
	RETURN check_sums('sums') + check_sums('vectors');
END $$;
-- An older snapshot sees no row of a table that was emptied.
CREATE FUNCTION sums_warm() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM posterior.warm_context(c) FROM unnest(ARRAY['sums', 'vectors']) c;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
	NULL;
END $$;
CREATE FUNCTION sums_triggers_on() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	t name;
BEGIN
	FOR t IN SELECT tgname FROM pg_trigger
			WHERE tgrelid = 'h'::regclass AND tgname LIKE 'posterior\_keep\_%' LOOP
		EXECUTE format('ALTER TABLE h ENABLE ALWAYS TRIGGER %I', t);
	END LOOP;
END $$;

CREATE FUNCTION check_all() RETURNS int STABLE LANGUAGE plpgsql AS $$
BEGIN
	RETURN check_causal('causal') + check_causal('read') + check_sums()
		+ check_causal('filtered', '-Infinity', 0.5) + check_window() + check_by_value()
		+ check_named('near');
END $$;

-- The same of one question after the other: the first one may go through the model together with
-- new rows.
CREATE FUNCTION check_scalar() RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
	result int;
BEGIN
	WITH c AS MATERIALIZED (SELECT posterior.context(y, x, z ORDER BY k, y, x, z) AS value FROM h),
	d AS (SELECT count(*)
			FILTER (WHERE posterior.predict('causal', q)
				OPERATOR(posterior.<>) scratch.prediction) AS differ, count(*) AS n
		FROM (SELECT row_number() OVER () AS ord, q FROM questions() q) named
		JOIN unnest((SELECT from_scratch(value) FROM c))
			WITH ORDINALITY scratch (prediction, ord) USING (ord))
	SELECT compare('causal', n::int, differ, CASE WHEN differ > 0
			THEN (SELECT posterior.rows(value)::text FROM c) END) INTO result FROM d;
	RETURN result;
END $$;

-- Some inserted rows are asked about by triggers, before and after the one that notes them.
CREATE FUNCTION ask() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM check_scalar(), check_sums();
	RETURN NULL;
END $$;
CREATE TRIGGER before_note AFTER INSERT ON h FOR EACH ROW WHEN (NEW.z = 77) EXECUTE FUNCTION ask();
CREATE TRIGGER the_end AFTER INSERT ON h FOR EACH ROW WHEN (NEW.z = 77) EXECUTE FUNCTION ask();

-- Rows written by triggers of other tables, some of them asking before and after.
CREATE FUNCTION write_via() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM check_causal('causal');
	INSERT INTO h (x, y, z) VALUES (NEW.x, NEW.x, 1);
	PERFORM check_causal('causal');
	RETURN NEW;
END $$;
CREATE TRIGGER via_row BEFORE INSERT ON via FOR EACH ROW EXECUTE FUNCTION write_via();

-- Many subtransactions, some rolled back.
CREATE FUNCTION many_subtransactions(n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		BEGIN
			INSERT INTO h (x, y, z) VALUES (random(), random(), i);
			IF i % 3 = 0 THEN
				RAISE EXCEPTION 'undone' USING ERRCODE = 'P0005';
			END IF;
		EXCEPTION WHEN SQLSTATE 'P0005' THEN
			NULL;
		END;
	END LOOP;
END $$;

-- A transaction whose deferred constraint fails, seen from a function: in a subtransaction, as a
-- commit would abort the client.
CREATE FUNCTION violate() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO h (x, y, u) SELECT random(), random(), 1 FROM generate_series(1, 2);
	SET CONSTRAINTS ALL IMMEDIATE;
EXCEPTION WHEN unique_violation THEN
	NULL;
END $$;
