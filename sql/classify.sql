-- labels as targets: frames, values, joint questions; the answers of the three forms agree
SELECT posterior.load_model('classes', current_setting('test.models')
		|| '/classes_rows.safetensors'), posterior.load_model('plain',
		current_setting('test.models') || '/classes_plain.safetensors');
SET posterior.class_model = 'classes';
SELECT name, head, classes, min_rows FROM posterior.models WHERE name IN ('classes', 'plain', 'toy')
	ORDER BY name COLLATE "C";
CREATE TABLE t AS SELECT i, i / 10.0 - 2 AS x, (ARRAY['red', 'blue'])[1 + i % 2] AS c,
	CASE WHEN i % 7 > 0 THEN (ARRAY['low', 'mid', 'high'])[1 + (i * i) % 3] END AS k
	FROM generate_series(1, 40) i;
INSERT INTO t VALUES (-1, 0.5, 'red', 'mid'), (0, 0.6, NULL, 'low'), (-2, NULL, 'blue', 'high');
-- a moving frame is the context of its rows with a label; rows without one are predicted
WITH w AS (SELECT i, x, c, posterior.classify(k, x, c)
		OVER (ORDER BY i ROWS BETWEEN 9 PRECEDING AND 1 PRECEDING) AS d FROM t)
SELECT count(*) AS rows, count(d) AS answered,
	bool_and(d::text = (SELECT posterior.predict(posterior.class_context(k, x, c ORDER BY i), w.x,
			w.c) FROM t WHERE t.i BETWEEN w.i - 9 AND w.i - 1)::text) AS same
FROM w WHERE i > 2;
SELECT count(*) AS imputed, bool_and(posterior.kind(d) = 'categorical') AS categorical
	FROM (SELECT k, posterior.classify(k, x, c) OVER () AS d FROM t) s WHERE k IS NULL;
-- the same with a leave-one-out frame and per group
WITH w AS (SELECT i, x, posterior.classify(k, x)
		OVER (PARTITION BY c ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
			EXCLUDE CURRENT ROW) AS d, c FROM t)
SELECT bool_and(d::text = (SELECT posterior.predict(posterior.class_context(k, x ORDER BY i), w.x)
			FROM t WHERE t.i <> w.i AND t.c IS NOT DISTINCT FROM w.c)::text) AS same FROM w
	WHERE c IS NOT NULL;
-- fewer rows than the model needs, or none
SELECT count(*) FILTER (WHERE d IS NULL) AS unanswered, min(i) FILTER (WHERE d IS NOT NULL) AS first
	FROM (SELECT i, posterior.classify(k, x)
		OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d FROM t) s;

-- the classes of a frame are the labels of its rows: a growing frame gains them as they appear
SELECT i, (SELECT string_agg(label, ' ' ORDER BY ord) FROM posterior.probabilities(d)
		WITH ORDINALITY p (label, probability, ord)) AS labels
FROM (SELECT i, posterior.classify(k, i)
		OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d
	FROM (VALUES (1, 'b'), (2, 'b'), (3, 'b'), (4, 'b'), (5, 'c'), (6, 'b'), (7, NULL), (8, 'a'),
			(9, 'a')) v (i, k)) s ORDER BY i;
-- one label alone is certain
SELECT posterior.classify(k, i) OVER () AS certain
	FROM (SELECT 'only' AS k, i FROM generate_series(1, 5) i) s LIMIT 1;
-- where all labels are there from the first rows on, a growing frame and log_evidence are one chain
-- rule
SELECT count(d) AS answered,
	abs(max(e) - sum(ln(posterior.probability(d, k)))) < 1e-4 AS evidence_is_the_sum
FROM (SELECT i, k, posterior.classify(k, x, c)
		OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d FROM t
		WHERE k IS NOT NULL) w,
	(SELECT posterior.log_evidence(k, x, c ORDER BY i) AS e FROM t) s;

-- labels of all types, in their order: bytes, false before true, numbers, as declared
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'Ecstatic');
CREATE DOMAIN verdict AS boolean;
CREATE FUNCTION labels(posterior.context) RETURNS text LANGUAGE sql AS $$
	SELECT posterior.labels($1)::text $$;
SELECT labels(posterior.class_context(k, i))
	FROM (VALUES ('b', 1), ('B', 2), ('', 3), ('é', 4), (NULL, 5), ('a b', 6)) v (k, i);
SELECT labels(posterior.class_context(i % 2 = 0, i)),
	labels(posterior.class_context((i > 2)::verdict, i)) FROM generate_series(1, 4) i;
SELECT labels(posterior.class_context((i - 3) * 5, i)),
	labels(posterior.class_context(((i - 3) * 5)::smallint, i)),
	labels(posterior.class_context((i - 3) * 5000000000, i)),
	labels(posterior.class_context(((i - 3) * 5)::text, i)) FROM generate_series(1, 5) i;
SELECT labels(posterior.class_context(m, 1)), labels(posterior.class_context(m::text, 1)),
	labels(posterior.class_context(m::text::name, 1)),
	labels(posterior.class_context(m::text::char(10), 1)),
	labels(posterior.class_context(m::text::varchar, 1)) FROM unnest(enum_range(NULL::mood)) m;
SELECT posterior.labels(posterior.context(i, i)) IS NULL AS numbers FROM generate_series(1, 5) i;
-- the type of a label does not matter beyond the order
SELECT bool_and(a::text = b::text) AS same
	FROM (SELECT posterior.classify(i % 3, i) OVER () AS a, posterior.classify((i % 3)::text, i)
		OVER () AS b FROM generate_series(1, 9) i) s;

-- values: bytes, equality, binary and text form
CREATE TABLE v AS SELECT posterior.class_context(k, x, c) AS ctx FROM t;
SELECT posterior.rows(ctx), posterior.features(ctx), posterior.labels(ctx) FROM v;
SELECT ctx::text::posterior.context OPERATOR(posterior.=) ctx AS text,
	posterior.context_send(ctx) = posterior.context_send(ctx::text::posterior.context) AS binary
	FROM v;
-- without ORDER BY the order of the rows does not matter
SELECT a OPERATOR(posterior.=) b AS same
	FROM (SELECT posterior.class_context(k, x, c) AS a FROM (SELECT * FROM t ORDER BY i) s) a,
	(SELECT posterior.class_context(k, x, c) AS b FROM (SELECT * FROM t ORDER BY i DESC) s) b;
SELECT bool_and(abs(total - 1) < 1e-6 AND n = 3) AS probabilities,
	bool_and(d::text::posterior.distribution OPERATOR(posterior.=) d) AS text,
	bool_and(posterior.probability(d, posterior.most_probable(d)) >= 1 / 3.0) AS mode,
	bool_and(posterior.probability(d, 'none') IS NULL) AS other,
		bool_and(posterior.entropy(d) <= ln(3) + 1e-9) AS entropy
FROM (SELECT d, sum(p.probability) AS total, count(*) AS n
		FROM v, t, LATERAL posterior.predict(ctx, x, c) d, LATERAL posterior.probabilities(d) p
		GROUP BY d) s;
SELECT count(*) AS rows,
	bool_and(prediction OPERATOR(posterior.=) posterior.predict(ctx, x, c)) AS same
FROM v, LATERAL posterior.predict_rows(ctx, (SELECT array_agg(ROW(x, c) ORDER BY i) FROM t)) p
	JOIN (SELECT row_number() OVER (ORDER BY i) AS ord, x, c FROM t) q USING (ord);

-- a label is found as it is; where all are written as booleans, or as integers, by every spelling
-- of the type; what is none has no probability
SELECT d, s AS spelling, posterior.probability(d, s) AS probability
	FROM (VALUES (1, 'categorical("false": 0.25, "true": 0.75)'::posterior.distribution),
		(2, 'categorical("-1": 0.25, "0": 0.5, "12": 0.25)'),
		(3, 'categorical("012": 0.25, "12": 0.5, "t": 0.25)'),
			(4, 'categorical("true": 1)')) v (n, d),
	LATERAL unnest(ARRAY['t', ' Yes', '1', 'off', 'true', 'maybe', ' 012 ', '+12', '-01', '0', '',
				'12x', '99999999999999999999']) WITH ORDINALITY s (s, ord) ORDER BY n, ord;
CREATE DOMAIN choice AS boolean;
SELECT posterior.probability(b, true) AS boolean, posterior.probability(b, false::choice) AS domain,
	posterior.probability(i, 12) AS integer, posterior.probability(i, 12::smallint) AS smallint,
	posterior.probability(i, 13::bigint) AS unknown, posterior.probability(e, 'sad'::mood) AS enum,
		posterior.probability(e, 'sad'::name) AS name,
		posterior.probability(e, 'sad'::char(9)) AS char, posterior.probability(b, NULL) AS "null"
FROM (SELECT 'categorical("false": 0.25, "true": 0.75)'::posterior.distribution AS b,
		'categorical("-1": 0.25, "12": 0.75)'::posterior.distribution AS i,
		'categorical("sad": 0.25, "ok": 0.75)'::posterior.distribution AS e) s;
SELECT posterior.probability(d, 1.5)
	FROM (SELECT 'categorical("1.5": 1)'::posterior.distribution AS d) s;
SELECT abs(posterior.log_density(ctx, 't', i)
		- posterior.log_density(ctx, 'true', i)) < 1e-12 AS also_in_joint_questions
	FROM (SELECT posterior.class_context(i > 2, i) AS ctx FROM generate_series(1, 6) i) c,
	generate_series(1, 2) i;
DROP DOMAIN choice;

-- joint draws and joint probabilities
CREATE TABLE drawn AS SELECT s.*
	FROM v, LATERAL posterior.sample_labels(ctx,
		(SELECT array_agg(ROW(x, c) ORDER BY i) FROM t WHERE i < 3), 2000, 5) s;
SELECT count(*), count(DISTINCT label) AS labels, min(draw), max(draw), min(ord),
	max(ord) FROM drawn;
SELECT bool_and(d.label = s.label) AS reproducible FROM drawn d
	JOIN (SELECT s.* FROM v, LATERAL posterior.sample_labels(ctx,
			(SELECT array_agg(ROW(x, c) ORDER BY i) FROM t WHERE i < 3), 3,
			5) s) s USING (draw, ord);
-- as often as the prediction says, within four standard errors
SELECT bool_and(abs(share - probability) < 4 * sqrt(probability * (1 - probability) / 2000)
		+ 1e-3) AS marginal
FROM v, LATERAL posterior.probabilities((SELECT posterior.predict(ctx, x, c) FROM t
			WHERE i = -2)) p, LATERAL (SELECT count(*)
		FILTER (WHERE d.label = p.label) / 2000.0 AS share FROM drawn d WHERE ord = 1) s;
SELECT abs(one - ln(posterior.probability(posterior.predict(ctx, x, c), k))) < 1e-6 AS one_row,
	abs(one - averaged) < 1e-6 AS any_order
FROM (SELECT posterior.log_density(ctx, k, x, c) AS one,
		posterior.log_density_averaged(ctx, 3, 1, k, x, c) AS averaged FROM v, t WHERE i = 5) s, v,
	t WHERE i = 5;
-- the probabilities of all labelings of two rows sum to one, in every order
SELECT abs(sum(exp(joint)) - 1) < 1e-5 AS first_second,
	abs(sum(exp(reverse)) - 1) < 1e-5 AS second_first, count(*)
FROM (SELECT posterior.log_density(ctx, CASE i WHEN 5 THEN a ELSE b END, x, c ORDER BY i) AS joint,
		posterior.log_density(ctx, CASE i WHEN 5 THEN a ELSE b END, x, c ORDER BY i DESC) AS reverse
	FROM v, t, unnest(posterior.labels(ctx)) a, unnest(posterior.labels(ctx)) b WHERE i IN (5, 6)
		GROUP BY a, b) s;
SELECT posterior.log_density(ctx, NULL::text, x, c) AS nothing FROM v, t WHERE i = 5;

-- a model of numbers that needs no rows; but a prediction needs a label
SET posterior.class_model = 'plain';
SELECT count(d) AS answered,
	bool_and(d::text = (SELECT posterior.predict(posterior.class_context(k, x ORDER BY i), w.x)
			FROM t WHERE t.i < w.i AND t.x IS NOT NULL)::text) AS same
FROM (SELECT i, x, posterior.classify(k, x)
		OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d FROM t
		WHERE x IS NOT NULL) w WHERE i IN (0, 1, 3, 8);
SELECT d IS NULL AS none FROM (SELECT posterior.classify(NULL::text, x) OVER () AS d FROM t) s
	LIMIT 1;
SELECT posterior.rows(ctx), posterior.labels(ctx),
	ctx::text::posterior.context OPERATOR(posterior.=) ctx AS text
	FROM (SELECT posterior.class_context(NULL::text, 1.0) AS ctx FROM t) s;
SELECT posterior.predict(posterior.class_context(NULL::text, 1.0), 1) FROM t;
SELECT posterior.class_context(k, x) IS NULL AS nothing FROM t WHERE false;

-- what the bundled model knows
SET posterior.class_model = 'tabular_class';
CREATE TABLE circles AS SELECT i, sin(i * 12.9898) * 2 AS x, sin(i * 78.233) * 2 AS y
	FROM generate_series(1, 240) i;
SELECT count(*) AS rows, avg((posterior.most_probable(d) = truth)::int) > 0.85 AS mostly_right,
	-avg(ln(posterior.probability(d, truth))) < 0.45 AS log_loss
FROM (SELECT i, CASE WHEN x * x + y * y < 2 THEN 'inside' WHEN x > 0 THEN 'right'
		ELSE 'left' END AS truth,
		posterior.classify(CASE WHEN i > 200 THEN NULL WHEN x * x + y * y < 2 THEN 'inside'
				WHEN x > 0 THEN 'right' ELSE 'left' END, x, y) OVER () AS d FROM circles) s
			WHERE i > 200;
-- what classes are called changes nothing, nor which of them are equally frequent
SELECT count(*) AS rows, bool_and(posterior.probability(d, truth) = posterior.probability(e, name)
		AND posterior.probability(d, 'out') = posterior.probability(e, 'a')) AS same
FROM (SELECT truth, CASE truth WHEN 'in' THEN 'z' WHEN 'out' THEN 'a' ELSE 'b' END AS name,
		posterior.predict(c, x, y) AS d, posterior.predict(o, x, y) AS e
	FROM (SELECT *, (ARRAY['in', 'out', 'between'])[1 + i % 3] AS truth FROM circles) s,
		(SELECT posterior.class_context(truth, x, y ORDER BY i) AS c,
			posterior.class_context(CASE truth WHEN 'in' THEN 'z' WHEN 'out' THEN 'a' ELSE 'b' END,
				x, y ORDER BY i) AS o
		FROM (SELECT *, (ARRAY['in', 'out', 'between'])[1 + i % 3] AS truth FROM circles
			WHERE i <= 180) f) q
	WHERE i > 180) p;
RESET posterior.class_model;
DROP TABLE t, v, drawn, circles;
DROP FUNCTION labels(posterior.context);
DROP DOMAIN verdict;
DROP TYPE mood;
SELECT posterior.drop_model('classes'), posterior.drop_model('plain');
