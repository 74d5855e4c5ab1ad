-- verbs and names: of schemas, tables and columns that need quotes, of columns that have the names
-- that the verbs' own statements use, and a search path full of strangers
\set SHOW_CONTEXT never
SET posterior.model = 'tabular_small';
SET TimeZone = 'UTC';
CREATE SCHEMA "Odd ""schema";
CREATE TABLE "Odd ""schema"."Sales %s $1" ("Day" date PRIMARY KEY, "select" float8, "it's" text,
	"Ünï col" float8, "a%sb" float8, "x\y" int);
INSERT INTO "Odd ""schema"."Sales %s $1" SELECT '2024-01-01'::date + i, 10 + i % 7 + i % 3,
	CASE i % 2 WHEN 0 THEN 'A''b' ELSE 'c"d' END, i % 5, i % 3, i % 4 FROM generate_series(0, 79) i;
\set odd '''"Odd ""schema"."Sales %s $1"'''
SELECT series, step, at FROM posterior.forecast(:odd, 'Day', 'select', 2, by => ARRAY['it''s'])
	ORDER BY 1, 2;
SELECT n FROM posterior.backtest(:odd, 'Day', 'select', 2, origins => 2,
	features => ARRAY['Ünï col', 'a%sb', 'x\y']);
SELECT n FROM posterior.evaluate(:odd, 'select', ARRAY['it''s', 'Ünï col', 'a%sb', 'x\y']);
SELECT n FROM posterior.evaluate(:odd, 'it''s', ARRAY['select', 'a%sb']);
SELECT count(*) FROM posterior.detect_anomalies(:odd, 'select', ARRAY['Ünï col', 'a%sb'],
	"time" => 'Day', by => ARRAY['it''s'], all_rows => true);
SELECT feature FROM posterior.importance(:odd, 'select', ARRAY['it''s', 'Ünï col', 'a%sb'])
	ORDER BY feature;
UPDATE "Odd ""schema"."Sales %s $1" SET "select" = NULL, "it's" = NULL WHERE "Day" = '2024-01-05';
SELECT row_key, column_name, cardinality(drawn) AS drawn FROM posterior.impute(:odd, draws => 2)
	ORDER BY 1, 2;
SELECT posterior.create_context('Odd "context', :odd, 'select', ARRAY['it''s', 'Ünï col', 'a%sb'],
	order_by => '"Day"');
SELECT count(mean) FROM posterior.score('Odd "context', :odd);
SELECT count(*) FROM posterior.suggest('Odd "context', :odd, 3);
SELECT posterior.watch('Odd "context', '"sur"prise');
INSERT INTO "Odd ""schema"."Sales %s $1" ("Day", "select", "it's")
	VALUES ('2025-01-01', 1e6, 'new') RETURNING """sur""prise" < 0.1 AS odd;
-- the density of a joint answer may be too small for a number: its logarithm is what counts
SELECT rows, gap >= 0 AS gap, kl_gap IS NOT NULL AS kl
	FROM posterior.order_gap('Odd "context', :odd, orders => 4, draws => 2);
-- triggers of contexts whose names differ at their ends alone
SELECT posterior.create_context(name, :odd, 'select', ARRAY['Ünï col'], order_by => '"Day"'),
		posterior.watch(name, "column")
	FROM (VALUES (repeat('north', 12), 's1'), (repeat('north', 11) || 'south', 's2'))
		v (name, "column");
INSERT INTO "Odd ""schema"."Sales %s $1" ("Day", "select", "Ünï col") VALUES ('2025-01-02', 12, 1)
	RETURNING s1 IS NOT NULL AS s1, s2 IS NOT NULL AS s2;
SELECT posterior.unwatch(repeat('north', 12));
INSERT INTO "Odd ""schema"."Sales %s $1" ("Day", "select", "Ünï col") VALUES ('2025-01-03', 12, 1)
	RETURNING s1 IS NOT NULL AS s1, s2 IS NOT NULL AS s2;
SELECT posterior.drop_context(name) FROM posterior.contexts WHERE name ~ 'north';
SELECT posterior.drop_context('Odd "context');

-- columns named as parts of the verbs' statements are named
CREATE TABLE plain AS SELECT i AS id, '2024-01-01'::date + i / 2 AS day, i % 2 AS part,
	i % 7 + i % 3 AS y FROM generate_series(0, 55) i;
DO $$
DECLARE
	name text;
	found bigint;
BEGIN
	FOREACH name IN ARRAY '{value,exact,local,newest,features,rows,key,times,series,step,at,level,
		i,t,r,h,n,fold,row_key,label,s,d,q,p,relation,target,time,model,"by 1"}'::text[] LOOP
		EXECUTE format('CREATE TABLE named AS SELECT id, day, part AS %I, y FROM plain', name);
		EXECUTE format('SELECT count(*) FROM posterior.forecast(''named'', ''day'', ''y'', 2,
			by => ARRAY[%L])', name) INTO found;
		IF found <> 4 THEN
			RAISE WARNING 'forecast by "%" has % rows', name, found;
		END IF;
		EXECUTE format('SELECT count(*) FROM posterior.detect_anomalies(''named'', ''y'',
			ARRAY[''id'', %L], folds => 2, all_rows => true, key => ''{day}'')', name) INTO found;
		IF found <> 56 THEN
			RAISE WARNING 'anomalies with feature "%" are % rows', name, found;
		END IF;
		PERFORM posterior.create_context('named', 'named', 'y', ARRAY[name, 'id']);
		EXECUTE 'SELECT rows
			FROM posterior.order_gap(''named'', ''named'', orders => 2, draws => 0)' INTO found;
		IF found <> 56 THEN
			RAISE WARNING 'an order gap with column "%" is of % rows', name, found;
		END IF;
		PERFORM posterior.drop_context('named');
		DROP TABLE named;
	END LOOP;
END $$;

-- columns that take the name of a row, or of the values before a row
DO $$
DECLARE
	name text;
	scored bigint;
	suggested bigint;
	odd bigint;
	gaps bigint;
BEGIN
	FOREACH name IN ARRAY '{r,n,q,row,rows,"posterior row","lag 1","lag 2"}'::text[] LOOP
		EXECUTE format('CREATE TABLE named AS SELECT id, part AS %I, y FROM plain', name);
		PERFORM posterior.create_context('named', 'named', 'y', ARRAY[name, 'id'],
			order_by => 'id');
		EXECUTE 'SELECT count(mean) FROM posterior.score(''named'', ''named'', key => ''{id}'')'
			INTO scored;
		EXECUTE 'SELECT count(mean) FROM posterior.suggest(''named'', ''named'', 3, draws => 2)'
			INTO suggested;
		EXECUTE format('SELECT count(*) FROM posterior.detect_anomalies(''named'', ''y'',
			ARRAY[%L], "time" => ''id'', history => 16, all_rows => true)', name) INTO odd;
		EXECUTE 'SELECT count(kl_gap)
			FROM posterior.order_gap(''named'', ''named'', orders => 2, draws => 2)' INTO gaps;
		IF (scored, suggested, odd, gaps) <> (56, 3, 52, 1) THEN
			RAISE WARNING 'with a column "%": %', name, (scored, suggested, odd, gaps);
		END IF;
		PERFORM posterior.drop_context('named');
		DROP TABLE named;
	END LOOP;
END $$;

-- functions and operators of other schemas are not called
CREATE SCHEMA strangers;
CREATE FUNCTION strangers.format(text, VARIADIC text[]) RETURNS text LANGUAGE plpgsql
	AS $$ BEGIN RAISE EXCEPTION 'a stranger formats'; END $$;
CREATE FUNCTION strangers.mean(posterior.distribution) RETURNS float8 LANGUAGE plpgsql
	AS $$ BEGIN RAISE EXCEPTION 'a stranger is mean'; END $$;
CREATE FUNCTION strangers.sqrt(float8) RETURNS float8 LANGUAGE plpgsql
	AS $$ BEGIN RAISE EXCEPTION 'a stranger takes roots'; END $$;
CREATE FUNCTION strangers.compare(float8, float8) RETURNS boolean LANGUAGE plpgsql
	AS $$ BEGIN RAISE EXCEPTION 'a stranger compares'; END $$;
CREATE OPERATOR strangers.< (LEFTARG = float8, RIGHTARG = float8, FUNCTION = strangers.compare);
CREATE OPERATOR strangers.= (LEFTARG = float8, RIGHTARG = float8, FUNCTION = strangers.compare);
CREATE FUNCTION strangers.subtract(float8, float8) RETURNS float8 LANGUAGE plpgsql
	AS $$ BEGIN RAISE EXCEPTION 'a stranger subtracts'; END $$;
CREATE OPERATOR strangers.- (LEFTARG = float8, RIGHTARG = float8, FUNCTION = strangers.subtract);
SELECT posterior.create_context('plain', 'plain', 'y', '{id,part}');
SET search_path = strangers, pg_catalog, public;
SELECT count(*) FROM posterior.forecast('plain', 'day', 'y', 2, by => '{part}', draws => 2);
SELECT n FROM posterior.backtest('plain', 'day', 'y', 2, by => '{part}', origins => 2);
SELECT n FROM posterior.evaluate('plain', 'y', '{id,part}', folds => 2);
SELECT count(*) FROM posterior.detect_anomalies('plain', 'y', '{id}', "time" => 'day',
	by => '{part}', all_rows => true);
SELECT count(*) FROM posterior.importance('plain', 'y', '{id,part}');
SELECT count(*) FROM posterior.impute('plain', key => '{id}');
SELECT count(*) FROM posterior.score('plain', 'plain', key => '{id}');
SELECT difference IS NOT NULL AS contrast
	FROM posterior.contrast('plain', '{"id": 1, "part": 0}', '{"id": 1, "part": 1}');
SELECT count(*) FROM posterior.suggest('plain', 'plain', 2, key => '{id}');
SELECT kl_gap IS NOT NULL AS gap
	FROM posterior.order_gap('plain', 'plain', orders => 2, draws => 2);
SELECT posterior.watch('plain');
INSERT INTO plain VALUES (80, '2024-03-01', 0, 1);
SELECT left(posterior.plot(1, 2, 3, 4, 5), 4) AS svg,
	length(posterior.plot_histogram('{0.5,0.5}')) > 0 AS text;
SELECT posterior.normal(0, 1)::jsonb::posterior.distribution AS "there and back",
	posterior.upper_confidence_bound(posterior.normal(0, 1)) AS bound;
RESET search_path;
SELECT posterior.drop_context('plain');
SET client_min_messages = warning;
DROP SCHEMA strangers, "Odd ""schema" CASCADE;
DROP TABLE plain;
