-- types.sql: fuzzing of values inside a server: seeds, mutants, and what is asked of a mutant that
-- is accepted. The variable `library` is test/fuzz/server_inputs.c, compiled.
--
-- SPDX-License-Identifier: PostgreSQL
CREATE EXTENSION pg_posterior;
CREATE SCHEMA fuzz;

CREATE FUNCTION fuzz.mutant(value bytea, other bytea, is_text boolean, seed bigint) RETURNS bytea
	AS :'library', 'fuzz_mutant' LANGUAGE C IMMUTABLE STRICT;
CREATE FUNCTION fuzz.receive_distribution(bytea) RETURNS posterior.distribution
	AS :'library', 'fuzz_receive' LANGUAGE C IMMUTABLE STRICT;
CREATE FUNCTION fuzz.receive_context(bytea) RETURNS posterior.context
	AS :'library', 'fuzz_receive' LANGUAGE C IMMUTABLE STRICT;
CREATE FUNCTION fuzz.input_distribution(bytea) RETURNS posterior.distribution
	AS :'library', 'fuzz_input' LANGUAGE C IMMUTABLE STRICT;
CREATE FUNCTION fuzz.input_context(bytea) RETURNS posterior.context
	AS :'library', 'fuzz_input' LANGUAGE C IMMUTABLE STRICT;
CREATE FUNCTION fuzz.state(bytea, regprocedure, regprocedure) RETURNS posterior.context
	AS :'library', 'fuzz_state' LANGUAGE C STRICT;
CREATE FUNCTION fuzz.is_text(text) RETURNS boolean
	AS :'library', 'fuzz_is_text' LANGUAGE C IMMUTABLE STRICT;

-- ---- seeds: values of every kind ----------------------------------------------------------------

CREATE TABLE fuzz.distributions (d posterior.distribution);
INSERT INTO fuzz.distributions VALUES
	('normal(3.25, 0.5)'), (posterior.normal(-1e100, 1e-100)),
	('mixture(0.3*normal(1, 0.2) + 0.7*normal(4, 1))'), ('mixture(1*normal(0, 1))'),
	('quantiles(0.5 [1, 2, 4] 0.7)'),
	(posterior.from_quantiles(ARRAY(SELECT i::float8 FROM generate_series(1, 99) i), 1, 2)),
	('bars(0 [0.2] 1 [0.8] 2.5)'), ('bars_half_normal(-4 [0.2] -1 [0.5] 1.5 [0.3] 9)'),
	('categorical("red": 0.25, "dark blue": 0.75)'), ('categorical("true": 0.5, "false": 0.5)'),
	(U&'categorical("!00e9!00e8": 0.5, "!+01F600!+01F601!+01F602": 0.25, "a\\b\"c": 0.25)'
		UESCAPE '!'),
	(posterior.categorical(ARRAY['1', '-7', '12345678901234567890'], '{0.5,0.25,0.25}')),
	(posterior.categorical(ARRAY[repeat(U&'\20ac', 40)], '{1}')),
	(posterior.bars(array_fill(1.0 / 256, ARRAY[256]),
				ARRAY(SELECT i::float8 FROM generate_series(0, 256) i), true));
INSERT INTO fuzz.distributions
SELECT posterior.mixture(array_fill(1.0 / n, ARRAY[n]),
		ARRAY(SELECT i::float8 FROM generate_series(1, n) i),
	array_fill(0.5::float8, ARRAY[n]))
FROM unnest(ARRAY[2, 5, 40]) n;

CREATE TABLE fuzz.contexts (c posterior.context);
INSERT INTO fuzz.contexts
SELECT posterior.context(y, y) FROM (VALUES (1.0), (2.5), (-1e300)) v (y)
UNION ALL SELECT posterior.context(i, i * 0.5, i % 2 = 0, date '2024-01-01' + i,
		make_interval(days => i), 'cat' || i % 3,
	CASE WHEN i % 4 > 0 THEN now() END) FROM generate_series(1, 12) i
UNION ALL SELECT posterior.context(NULL::float8, i) FROM generate_series(1, 3) i
UNION ALL SELECT posterior.context(i, NULL::float8, NULL::text) FROM generate_series(1, 6) i
UNION ALL SELECT posterior.context(sin(i), i, i * i, -i, i % 5, i / 3.0, 1e5 * i)
	FROM generate_series(1, 40) i
UNION ALL SELECT posterior.class_context(CASE i % 3 WHEN 0 THEN U&'\00e9\00e8' WHEN 1
		THEN 'dark blue' ELSE 'red' END, i, i % 2 = 0)
	FROM generate_series(1, 9) i
UNION ALL SELECT posterior.class_context(i % 2 = 0, i) FROM generate_series(1, 8) i
UNION ALL SELECT posterior.class_context(i % 50, i) FROM generate_series(1, 60) i
UNION ALL SELECT posterior.class_context(NULL::text, i) FROM generate_series(1, 2) i
UNION ALL SELECT posterior.context(ARRAY[i, -0.5 * i, 7], i, 'x' || i % 2)
	FROM generate_series(1, 5) i;
-- sums: of one target, of three, and bases, whose words only a model checks
INSERT INTO fuzz.contexts
SELECT (concat(kind, '0002', n, targets, '0101', '0000000000000002', repeat('00000000000000ab', 2),
		CASE WHEN n <> repeat('0', 16) THEN concat(n, repeat('00000000000000cd', 4)) END))
	::posterior.context
FROM (VALUES ('03', ''), ('07', '03')) k (kind, targets),
	(VALUES (repeat('0', 16)), ('0000000000000009')) r (n);

CREATE TABLE fuzz.seeds AS
SELECT form, array_agg(bytes) AS bytes
FROM (SELECT 'distribution, binary' AS form, posterior.distribution_send(d) AS bytes
		FROM fuzz.distributions
	UNION ALL SELECT 'distribution, text', convert_to(d::text, 'UTF8') FROM fuzz.distributions
	UNION ALL SELECT 'context, binary', posterior.context_send(c) FROM fuzz.contexts
	UNION ALL SELECT 'context, text', convert_to(c::text, 'UTF8') FROM fuzz.contexts
	UNION ALL SELECT 'context, state', posterior.context_send(c) FROM fuzz.contexts) s
GROUP BY form;

-- ---- what is asked of values --------------------------------------------------------------------

-- Every accessor answers or refuses; binary and text form read back to the same value.
CREATE FUNCTION fuzz.examine(d posterior.distribution) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	accessor text;
BEGIN
	IF fuzz.receive_distribution(posterior.distribution_send(d)) OPERATOR(posterior.<>) d
		OR d::text::posterior.distribution OPERATOR(posterior.<>) d THEN
		RAISE EXCEPTION 'the value does not read back' USING ERRCODE = 'assert_failure';
	END IF;
	IF posterior.kind(d) = 'categorical' THEN
		PERFORM posterior.most_probable(d), posterior.probability(d, 'true'), posterior.entropy(d),
			(SELECT count(*) FROM posterior.probabilities(d));
	ELSE
		PERFORM posterior.mean(d), posterior.stddev(d), posterior.variance(d), posterior.median(d),
			posterior.mode(d),
			posterior.entropy(d), posterior.quantile(d, 0.999),
				posterior.quantile(d, '{0.1,0.5}'::float8[]), posterior.cdf(d, 1.5),
			posterior.pdf(d, -2), posterior.log_pdf(d, 1e10), posterior.crps(d, 0.25),
				posterior.bounds(d, 0.9),
			posterior.draw(d, 2, 1);
	END IF;
END
$$;

CREATE FUNCTION fuzz.examine(c posterior.context, predict boolean)
	RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF fuzz.receive_context(posterior.context_send(c)) OPERATOR(posterior.<>) c
		OR c::text::posterior.context OPERATOR(posterior.<>) c THEN
		RAISE EXCEPTION 'the value does not read back' USING ERRCODE = 'assert_failure';
	END IF;
	IF cardinality(posterior.features(c)) < 1
		OR posterior.rows(c) < cardinality(posterior.labels(c)) - 255 THEN
		RAISE EXCEPTION 'the value has no features' USING ERRCODE = 'assert_failure';
	END IF;
	IF predict AND posterior.rows(c) BETWEEN 4 AND 30 AND posterior.targets(c) = 1
		AND left(c::text, 2) <> '03' THEN
		PERFORM posterior.predict(c,
				(SELECT jsonb_agg(NULL::text) FROM unnest(posterior.features(c))));
	END IF;
END
$$;

CREATE FUNCTION fuzz.take(form text, input bytea, predict boolean)
	RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	CASE form
		WHEN 'distribution, binary' THEN PERFORM fuzz.examine(fuzz.receive_distribution(input));
		WHEN 'distribution, text' THEN PERFORM fuzz.examine(fuzz.input_distribution(input));
		WHEN 'context, binary' THEN PERFORM fuzz.examine(fuzz.receive_context(input), predict);
		WHEN 'context, text' THEN PERFORM fuzz.examine(fuzz.input_context(input), predict);
		ELSE PERFORM fuzz.examine(fuzz.state(input,
				'posterior_internal.rows_deserialize(bytea, internal)',
			'posterior_internal.context_final(internal)'), predict);
	END CASE;
END
$$;

-- One input: the SQLSTATE of its refusal, or `00000`. Refusals are of data (22), limits (54) or the
-- protocol (08P01), in valid text.
CREATE FUNCTION fuzz.try(form text, input bytea, predict boolean, OUT state text, OUT wrong boolean,
		OUT message text)
LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	hint text;
BEGIN
	state := '00000';
	wrong := false;
	PERFORM fuzz.take(form, input, predict);
EXCEPTION WHEN OTHERS OR assert_failure THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
		detail = PG_EXCEPTION_DETAIL,
		hint = PG_EXCEPTION_HINT;
	wrong := state !~ '^(22...|54...|08P01)$';
	IF NOT (fuzz.is_text(message) AND fuzz.is_text(detail) AND fuzz.is_text(hint)) THEN
		wrong := true;
		message := 'not text: ' || encode(message::bytea, 'escape');
	END IF;
END
$$;

-- Inputs of all forms in turn: how many had which outcome, and the first ones of which the outcome
-- is wrong.
CREATE FUNCTION fuzz.run(first bigint, n bigint)
RETURNS TABLE (form text, state text, wrong boolean, count bigint, example text)
	LANGUAGE plpgsql AS $$
DECLARE
	forms text[] := ARRAY(SELECT s.form FROM fuzz.seeds s ORDER BY 1);
	counts jsonb := '{}';
	seeds bytea[];
	input bytea;
	key text;
	got record;
BEGIN
	FOREACH form IN ARRAY forms LOOP
		SELECT s.bytes INTO seeds FROM fuzz.seeds s WHERE s.form = run.form;
		FOR i IN first .. first + n / cardinality(forms) - 1 LOOP
			input := fuzz.mutant(seeds[1 + i % cardinality(seeds)],
					seeds[1 + (i / 7) % cardinality(seeds)],
				form LIKE '%text', i);
			got := fuzz.try(form, input, i % 50 = 0);
			IF got.wrong THEN
				wrong := true;
				state := got.state;
				count := i;
				example := got.message || ': ' || left(encode(input, 'escape'), 400);
				RETURN NEXT;
			END IF;
			key := form || '|' || got.state;
			counts := counts || jsonb_build_object(key, coalesce((counts -> key)::bigint, 0) + 1);
		END LOOP;
	END LOOP;
	wrong := false;
	FOR key, count IN SELECT * FROM jsonb_each_text(counts) LOOP
		form := split_part(key, '|', 1);
		state := split_part(key, '|', 2);
		example := NULL;
		RETURN NEXT;
	END LOOP;
END
$$;
