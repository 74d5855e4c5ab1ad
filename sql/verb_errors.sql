-- the commonest mistakes with each verb: a clear error with a hint, or a right answer
\set SHOW_CONTEXT never
SET TimeZone = 'UTC';
SET posterior.model = 'tabular_small';
CREATE TABLE good (id int PRIMARY KEY, at date, x float8, kind text, site text, y float8);
INSERT INTO good SELECT i, '2024-01-01'::date + (i + 1) / 2, i % 7,
	(ARRAY['p', 'q'])[1 + i % 3 / 2],
	(ARRAY['north', 'south'])[1 + i % 2], 3 * (i % 7) + i % 4 FROM generate_series(0, 119) i;
CREATE VIEW north AS SELECT * FROM good WHERE site = 'north';
CREATE VIEW text_times AS SELECT id, at::text AS at, x, kind, site, y FROM north;
CREATE VIEW shuffled AS SELECT * FROM north ORDER BY md5(id::text);
CREATE VIEW gaps AS SELECT * FROM north WHERE id % 3 > 0 OR id > 100;
CREATE VIEW mostly_gaps AS SELECT id, at + CASE WHEN id > 60 THEN 400000 ELSE 0 END AS at, x, kind,
	site, y FROM north;
CREATE VIEW few AS SELECT * FROM north WHERE id < 8;
CREATE VIEW untold AS SELECT id, at, x, kind, site, NULL::float8 AS y FROM north;
CREATE VIEW untimed AS SELECT id, CASE WHEN id > 9 THEN at END AS at, x, kind, site, y FROM north;
CREATE VIEW no_rows AS SELECT * FROM north WHERE false;
CREATE VIEW infinite AS SELECT id, at, x, kind, site, CASE WHEN id > 9 THEN y ELSE 'Infinity' END
	AS y FROM north;
SELECT posterior.create_context('good', 'good', 'y', '{x,kind}', order_by => 'id');
SELECT posterior.create_context('kinds', 'good', 'kind', '{x,y}', order_by => 'id');
SELECT posterior.create_context('few', 'few', 'y', '{x,kind}', order_by => 'id');
SELECT posterior.create_context('untold', 'untold', 'y', '{x,kind}', order_by => 'id');
CREATE TABLE mistake (place int GENERATED ALWAYS AS IDENTITY, verb text, mistake text,
	statement text);
-- of series: relation, time, target, and the rest
INSERT INTO mistake (verb, mistake, statement)
SELECT verb, mistake, format('SELECT * FROM posterior.%s(%s%s)', verb, arguments,
	CASE WHEN arguments ~ 'horizon' THEN '' ELSE ', horizon => 3' END)
FROM unnest('{forecast,forecast_total,backtest}'::text[]) WITH ORDINALITY v (verb, i),
	(VALUES (1, 'leak: the target as a feature', $$'north', 'at', 'y', features => '{y}'$$),
		(2, 'unsorted rows', $$'shuffled', 'at', 'y'$$),
		(3, 'duplicate times', $$'good', 'at', 'y'$$),
		(4, 'gaps', $$'gaps', 'at', 'y'$$),
		(5, 'more gaps than values', $$'mostly_gaps', 'at', 'y'$$),
		(6, 'times in text', $$'text_times', 'at', 'y'$$),
		(7, 'NULL times', $$'untimed', 'at', 'y'$$),
		(8, 'too few rows', $$'few', 'at', 'y'$$),
		(9, 'no rows', $$'no_rows', 'at', 'y'$$),
		(10, 'all NULL', $$'untold', 'at', 'y'$$),
		(11, 'infinite values', $$'infinite', 'at', 'y'$$),
		(12, 'wrong group', $$'good', 'at', 'y', by => '{kind}'$$),
		(13, 'group that does not exist', $$'good', 'at', 'y', by => '{store}'$$),
		(14, 'groups of one row', $$'good', 'at', 'y', by => '{id}'$$),
		(14, 'horizon 0', $$'north', 'at', 'y', horizon => 0$$),
		(15, 'horizon too long', $$'north', 'at', 'y', horizon => 100000$$),
		(16, 'unknown target', $$'north', 'at', 'sales'$$),
		(17, 'unknown time', $$'north', 'day', 'y'$$),
		(18, 'a label as target', $$'north', 'at', 'kind'$$),
		(19, 'level in per cent', $$'north', 'at', 'y', level => 90$$),
		(20, 'unknown model', $$'north', 'at', 'y', model => 'arima'$$)) m (n, mistake, arguments)
ORDER BY i, n;
-- of relations: relation, target, and the rest
INSERT INTO mistake (verb, mistake, statement)
SELECT verb, mistake, format('SELECT * FROM posterior.%s(%s)', verb, arguments)
FROM unnest('{evaluate,detect_anomalies,importance}'::text[]) WITH ORDINALITY v (verb, i),
	(VALUES (1, 'leak: the target as a feature', $$'north', 'y', '{x,y}'$$, NULL),
		(2, 'unsorted rows', $$'shuffled', 'y', '{x}'$$, NULL),
		(3, 'duplicate times', $$'good', 'y', '{x}', "time" => 'at'$$, 'importance'),
		(4, 'times in text', $$'text_times', 'y', '{x}', "time" => 'at'$$, 'importance'),
		(5, 'NULL times', $$'untimed', 'y', '{x}', "time" => 'at'$$, 'importance'),
		(6, 'unknown time', $$'north', 'y', '{x}', "time" => 'day'$$, 'importance'),
		(7, 'too few rows', $$'few', 'y', '{x}'$$, NULL),
		(8, 'no rows', $$'no_rows', 'y', '{x}'$$, NULL),
		(9, 'all NULL', $$'untold', 'y', '{x}'$$, NULL),
		(10, 'infinite values', $$'infinite', 'y', '{x}'$$, NULL),
		(11, 'wrong group', $$'good', 'y', '{x}', by => '{id}'$$, NULL),
		(12, 'group that does not exist', $$'good', 'y', '{x}', by => '{store}'$$, NULL),
		(13, 'gaps', $$'gaps', 'y', '{x}', "time" => 'at'$$, 'importance'),
		(13, 'no folds', $$'good', 'y', '{x}', folds => 0$$, NULL),
		(14, 'unknown target', $$'north', 'sales', '{x}'$$, NULL),
		(15, 'unknown feature', $$'north', 'y', '{price}'$$, NULL),
		(16, 'a time as target', $$'north', 'at', '{x}'$$, NULL),
		(17, 'level in per cent', $$'north', 'y', '{x}', level => 90$$, 'importance'),
		(18, 'unknown model', $$'north', 'y', '{x}', model => 'forest'$$, NULL)
	) m (n, mistake, arguments, without)
WHERE verb IS DISTINCT FROM without ORDER BY i, n;
INSERT INTO mistake (verb, mistake, statement) VALUES
	('impute', 'no key', $$SELECT * FROM posterior.impute('north')$$),
	('impute', 'unknown key', $$SELECT * FROM posterior.impute('north', key => '{code}')$$),
	('impute', 'key of several rows', $$SELECT * FROM posterior.impute('holes', columns => '{x}',
		key => '{kind}', draws => 2)$$),
	('impute', 'unknown column', $$SELECT * FROM posterior.impute('good', columns => '{z}')$$),
	('impute', 'a time', $$SELECT * FROM posterior.impute('good', columns => '{at}')$$),
	('impute', 'a column twice', $$SELECT * FROM posterior.impute('good', columns => '{x,x}')$$),
	('impute', 'all NULL', $$SELECT * FROM posterior.impute('untold', columns => '{y}',
		key => '{id}')$$),
	('impute', 'too few rows', $$SELECT * FROM posterior.impute('few', columns => '{y}',
		key => '{id}')$$),
	('impute', 'no features', $$SELECT * FROM posterior.impute('good', features => '{}')$$),
	('impute', 'wrong group', $$SELECT * FROM posterior.impute('good', by => '{store}')$$),
	('impute', 'negative draws', $$SELECT * FROM posterior.impute('good', draws => -1)$$),
	('impute', 'level in per cent', $$SELECT * FROM posterior.impute('good', level => 90)$$),
	('impute', 'unknown model', $$SELECT * FROM posterior.impute('good', model => 'forest')$$);
CREATE VIEW holes AS SELECT id, at, CASE WHEN id % 9 > 0 THEN x END AS x, kind, site, y FROM good;
CREATE VIEW other AS SELECT id, y FROM good;
CREATE VIEW texts AS SELECT id, x::text AS x, kind, y FROM good;
-- of named contexts: context, relation, and the rest
INSERT INTO mistake (verb, mistake, statement)
SELECT verb, mistake, format('SELECT * FROM posterior.%s(%s)', verb, arguments)
FROM unnest('{score,suggest,order_gap}'::text[]) WITH ORDINALITY v (verb, i),
	(VALUES (1, 'unknown context', $$'bad', 'good'$$),
		(2, 'NULL context', $$NULL, 'good'$$),
		(3, 'unknown relation', $$'good', 'nowhere'$$),
		(4, 'missing features', $$'good', 'other'$$),
		(5, 'features of another type', $$'good', 'texts'$$),
		(6, 'context with too few rows', $$'few', 'few'$$),
		(7, 'context without targets', $$'untold', 'few'$$),
		(8, 'no rows', $$'good', 'no_rows'$$)) m (n, mistake, arguments) ORDER BY i, n;
INSERT INTO mistake (verb, mistake, statement) VALUES
	('score', 'unknown key', $$SELECT * FROM posterior.score('good', 'few', key => '{code}')$$),
	('score', 'level in per cent',
		$$SELECT * FROM posterior.score('good', 'few', levels => '{5,95}')$$),
	('score', 'no block', $$SELECT * FROM posterior.score('good', 'few', block => 0)$$),
	('suggest', 'labels', $$SELECT * FROM posterior.suggest('kinds', 'few')$$),
	('suggest', 'unknown method',
		$$SELECT * FROM posterior.suggest('good', 'few', method => 'ucb')$$),
	('suggest', 'none of them', $$SELECT * FROM posterior.suggest('good', 'few', 0)$$),
	('order_gap', 'labels', $$SELECT * FROM posterior.order_gap('kinds', 'few')$$),
	('order_gap', 'one order', $$SELECT * FROM posterior.order_gap('good', 'few', 1)$$),
	('order_gap', 'all NULL', $$SELECT * FROM posterior.order_gap('good', 'untold')$$),
	('contrast', 'unknown context', $$SELECT * FROM posterior.contrast('bad', '{}', '{}')$$),
	('contrast', 'NULL row', $$SELECT * FROM posterior.contrast('good', NULL, '{}')$$),
	('contrast', 'missing features', $$SELECT * FROM posterior.contrast('good', '{"x": 1}',
		'{"x": 2}')$$),
	('contrast', 'features of another type',
		$$SELECT * FROM posterior.contrast('good', '{"x": "one", "kind": "p"}',
			'{"x": 2, "kind": "p"}')$$),
	('contrast', 'no JSON object', $$SELECT * FROM posterior.contrast('good', '3', '4')$$),
	('contrast', 'labels', $$SELECT * FROM posterior.contrast('kinds', '{"x": 1, "y": 1}',
		'{"x": 2, "y": 1}')$$),
	('contrast', 'context with too few rows', $$SELECT * FROM posterior.contrast('few',
		'{"x": 1, "kind": "p"}', '{"x": 2, "kind": "p"}')$$),
	('contrast', 'one draw', $$SELECT * FROM posterior.contrast('good',
		'{"x": 1, "kind": "p"}', '{"x": 2, "kind": "p"}', draws => 1)$$),
	('contrast', 'level in per cent', $$SELECT * FROM posterior.contrast('good',
		'{"x": 1, "kind": "p"}', '{"x": 2, "kind": "p"}', level => 90)$$),
	('watch', 'unknown context', $$SELECT posterior.watch('bad')$$),
	('watch', 'context of a view', $$SELECT posterior.watch('few')$$),
	('watch', 'column of the context', $$SELECT posterior.watch('good', 'x')$$),
	('watch', 'column of another type', $$SELECT posterior.watch('good', 'site')$$),
	('watch', 'threshold in per cent', $$SELECT posterior.watch('good', threshold => 5)$$),
	('watch', 'table of another kind', $$SELECT posterior.watch('good', into_table => 'mistake')$$),
	('watch', 'nothing to leave out by', $$SELECT posterior.watch('good', into_table => 'told',
		leave_out => true)$$),
	('watch', 'unknown key', $$SELECT posterior.watch('good', into_table => 'told',
		key => '{code}')$$),
	('watch', 'times in text', $$SELECT posterior.watch('good', into_table => 'told',
		"time" => 'site')$$),
	('unwatch', 'unknown context', $$SELECT posterior.unwatch('bad')$$);
CREATE FUNCTION attempt(statement text, OUT state text, OUT message text, OUT hint text)
	LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	EXECUTE 'SELECT count(*) FROM (' || statement || ') s' INTO n;
	state := 'ok';
	message := n || ' rows';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
		hint = PG_EXCEPTION_HINT;
END $$;
CREATE TABLE outcome AS SELECT m.*, a.* FROM mistake m, LATERAL attempt(statement) a;
\pset format unaligned
SELECT verb, mistake, state, message FROM outcome ORDER BY place;
SELECT DISTINCT hint FROM outcome WHERE hint <> '' ORDER BY 1;
\pset format aligned
-- none without a hint, none that the server's internals raise, ten mistakes of every verb
SELECT verb, mistake, state, message FROM outcome
	WHERE state NOT IN ('ok', '42P01') AND (hint = '' OR state ~ '^(XX|42601|22P02|42883|42725)')
	ORDER BY place;
SELECT verb, count(*) AS mistakes FROM outcome GROUP BY verb
HAVING count(*) < 9 AND verb <> 'unwatch'
	ORDER BY verb;
DROP VIEW north, text_times, shuffled, gaps, mostly_gaps, few, untold, untimed, no_rows, infinite,
	holes, other, texts CASCADE;
DROP TABLE good, mistake, outcome CASCADE;
DROP FUNCTION attempt;
-- targets of any size, or an error
CREATE TABLE sizes AS SELECT i AS x, 2 + sin(i) AS y FROM generate_series(1, 40) i;
CREATE VIEW large AS SELECT x, y * 1e100 AS y FROM sizes;
SELECT rmse BETWEEN 1e98 AND 1e100 AS large FROM posterior.evaluate('large', 'y', '{x}');
SELECT posterior.mean(posterior.predict(posterior.context(y * 1e-120, x), 3.0)) FROM sizes;
DROP TABLE sizes CASCADE;
-- what a hint suggests runs, and is taken, whatever the type
CREATE TABLE odd_types AS SELECT i AS id, '2024-01-01'::date + i AS d,
	make_time(i, 0, 0) AS t, i * interval '1 day' AS iv, i::numeric::money AS m, i % 2 = 0 AS b,
	to_jsonb(i) AS j, ARRAY[i, 2] AS a, ARRAY['a'] AS words, i::text AS txt, i::char(4) AS padded,
	i * 86400.0::float8 AS e, i * 86400::numeric AS n, md5(i::text)::uuid AS u, '1'::bit(3) AS bits,
	int4range(i, i + 1) AS r, ('2024-01-' || i)::text AS says
FROM generate_series(1, 20) i;
CREATE FUNCTION suggested("time" text, target text, OUT hint text, OUT taken text)
	LANGUAGE plpgsql AS $$
DECLARE
	expression text;
BEGIN
	PERFORM FROM posterior.forecast('odd_types', "time", target, 2);
	hint := 'none is needed';
EXCEPTION WHEN datatype_mismatch THEN
	GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
	expression := substring(hint FROM 'SELECT (.*), and name the view');
	IF expression IS NULL THEN
		RETURN;
	END IF;
	EXECUTE format('CREATE VIEW suggestion AS SELECT %s, %s FROM odd_types', expression,
		CASE WHEN target = 'id' THEN 'id' ELSE "time" END);
	SELECT count(*) || ' steps' INTO taken
	FROM posterior.forecast('suggestion', "time", target, 2);
	DROP VIEW suggestion;
END $$;
\pset format unaligned
SELECT c AS target, s.* FROM
	unnest('{d,t,iv,m,b,j,a,words,txt,padded,u,bits,r}'::text[]) c, suggested('id', c) s;
SELECT c AS "time", s.* FROM unnest('{d,t,iv,m,b,j,a,says,e,n,u,r}'::text[]) c,
	suggested(c, 'id') s;
\pset format aligned
DROP TABLE odd_types;
DROP FUNCTION suggested;
