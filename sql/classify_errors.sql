-- labels as targets: what is refused, and how
SELECT posterior.load_model('classes', current_setting('test.models')
		|| '/classes_rows.safetensors'), posterior.load_model('plain',
		current_setting('test.models') || '/classes_plain.safetensors');
SET posterior.class_model = 'classes';
CREATE TABLE t AS SELECT i, 'k' || i % 3 AS k, i * 0.1 AS x FROM generate_series(1, 12) i;
CREATE TABLE v AS SELECT posterior.class_context(k, x) AS labels,
	posterior.context(x, x) AS numbers FROM t;
-- more labels than the model has room for: 5
SELECT posterior.classify(i % 6, x) OVER () FROM t;
SELECT posterior.classify(i % 6, x)
	OVER (ORDER BY i ROWS BETWEEN 4 PRECEDING AND 1 PRECEDING) IS NULL AS short_frames_have_fewer
	FROM t ORDER BY i DESC LIMIT 1;
SELECT posterior.predict(posterior.class_context(i % 6, x), 1.0) FROM t;
SELECT posterior.log_evidence(i::text, x ORDER BY i) FROM t;
SELECT posterior.class_context(i, i) FROM generate_series(1, 65) i;
SELECT posterior.create_context('many', 't', 'i', '{x}', 'i', model => 'classes');
SELECT posterior.predict('many', t) FROM t;
SELECT posterior.drop_context('many');
-- types that are no labels
SELECT posterior.classify(x, i) OVER () FROM t;
SELECT posterior.classify(now(), i) OVER () FROM t;
SELECT posterior.class_context(ARRAY[i], x) FROM t;
SELECT posterior.classify(k) OVER () FROM t;
SELECT posterior.classify(k, x) FROM t;
SELECT posterior.classify(k, VARIADIC ARRAY[x]) OVER () FROM t;
-- a model of the other kind
SET posterior.class_model = 'toy';
SELECT posterior.classify(k, x) OVER () FROM t;
SELECT posterior.predict(labels, 1.0) FROM v;
SELECT posterior.log_evidence(k, x ORDER BY i) FROM t;
SET posterior.class_model = '';
SELECT posterior.classify(k, x) OVER () FROM t;
SET posterior.class_model = 'nothing';
SELECT posterior.predict(labels, 1.0) FROM v;
SET posterior.class_model = 'classes';
SET posterior.model = 'classes';
SELECT posterior.regress(x, x) OVER () FROM t;
SELECT posterior.predict(numbers, 1.0) FROM v;
SELECT posterior.log_evidence(x, x ORDER BY i) FROM t;
RESET posterior.model;
-- targets of the other kind
SELECT posterior.regress(ARRAY[k], x) OVER () FROM t;
SELECT posterior.context(ARRAY[k], x) FROM t;
SELECT posterior.log_density(labels, x, x) FROM v, t;
SELECT posterior.log_density(numbers, k, x) FROM v, t;
SELECT posterior.log_density(labels, 'other', x) FROM v, t;
SELECT posterior.log_density(ctx, k, x)
	FROM (SELECT posterior.class_context(NULL::text, x) AS ctx FROM t) s, t;
SELECT posterior.sample(labels, ARRAY[1.0]) FROM v;
SELECT posterior.sample_labels(numbers, ARRAY[1.0]) FROM v;
SELECT posterior.mode(posterior.predict(labels, 1.0)) FROM v;
SELECT posterior.probabilities(posterior.normal(0, 1));
SELECT posterior.predict(posterior.class_context(k, x), 1.0) FROM t WHERE i < 4;
-- bytes that are no context: no labels, too few, one twice, one that is not ended, a target beyond
-- them
CREATE FUNCTION hex(labels int, names text, target text) RETURNS posterior.context LANGUAGE sql AS
	$$ SELECT ('02' || '0001' || '0000000000000001' || '01' || '3ff0000000000000' || target
			|| lpad(to_hex(labels), 2, '0') || names)::posterior.context $$;
SELECT posterior.labels(hex(2, '61006200', '3ff0000000000000'));
SELECT hex(0, '6100', '0000000000000000');
SELECT hex(3, '61006200', '0000000000000000');
SELECT hex(2, '61006100', '0000000000000000');
SELECT hex(2, '610062', '0000000000000000');
SELECT hex(65, '6100', '0000000000000000');
SELECT hex(2, '61006200', '4000000000000000');
SELECT hex(2, '61006200', '3fe0000000000000');
SELECT hex(1, 'ff00', '0000000000000000');
DROP FUNCTION hex(int, text, text);

-- named contexts: the target decides which model is meant where none is given
CREATE TABLE named (id int PRIMARY KEY, x float8, k text, n int, b boolean, r float8);
INSERT INTO named SELECT i, sin(i), 'k' || i % 3, i % 3, i % 2 = 0, cos(i)
	FROM generate_series(1, 12) i;
SELECT posterior.create_context('a', 'named', 'k', '{x}', model => 'tabular_small');
SELECT posterior.create_context('a', 'named', 'r', '{x}', model => 'classes');
SELECT posterior.create_context('a', 'named', 'k', '{x}');
SELECT posterior.create_context('b', 'named', 'n', '{x}'),
	posterior.create_context('c', 'named', 'n', '{x}', model => 'classes'),
	posterior.create_context('d', 'named', 'b', '{x}');
SELECT name, model FROM posterior.contexts WHERE relation = 'named'::regclass
	ORDER BY name COLLATE "C";
SELECT name, posterior.kind(posterior.predict(name, named)) FROM posterior.contexts c, named
	WHERE relation = 'named'::regclass AND id = 1 ORDER BY name COLLATE "C";
SELECT posterior.alter_context('a', target => 'r');
SELECT posterior.alter_context('b', target => 'k');
SELECT posterior.alter_context('a', target => 'r', model => 'tabular_small');
SELECT posterior.kind(posterior.predict('a', named)) FROM named WHERE id = 1;
SELECT posterior.log_density('c', 7, named) FROM named;
SELECT posterior.log_density('c', '7', named) FROM named;
SELECT posterior.log_density('b', 'a', named) FROM named;
SELECT * FROM posterior.sample('c', ARRAY(SELECT named FROM named));
SELECT * FROM posterior.sample_labels('b', ARRAY(SELECT named FROM named));
ALTER TABLE named ALTER n TYPE float8;
SELECT posterior.predict('c', named) FROM named WHERE id = 1;
SELECT posterior.kind(posterior.predict('b', named)) FROM named WHERE id = 1;
ALTER TABLE named ALTER n TYPE json USING '1';
SELECT posterior.predict('b', named) FROM named WHERE id = 1;
TRUNCATE named;
SELECT posterior.predict('d', ROW(1.0)) FROM (SELECT 1) s;
SELECT posterior.predict('d', q) FROM (SELECT 1.0::float8 AS x) q;
SELECT posterior.alter_context('d', model => 'plain');
SELECT posterior.predict('d', q) FROM (SELECT 1.0::float8 AS x) q;
DROP TABLE t, v, named;
RESET posterior.class_model;
SELECT posterior.drop_model('classes'), posterior.drop_model('plain');
