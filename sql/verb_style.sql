-- posterior.distribution_style: what a client gets as text, and nothing else
\set SHOW_CONTEXT never
CREATE TABLE d (id int, d posterior.distribution);
INSERT INTO d VALUES (1, posterior.normal(3.2, 0.5)),
	(2, posterior.mixture('{0.3,0.7}', '{-1000,4000}', '{50,200}')),
	(3, posterior.bars('{0.2,0,0.8}', '{-1,0,1,3}')),
	(4, posterior.bars('{0.1,0.6,0.3}', '{-1,0,1,3}', true)),
	(5, posterior.categorical(ARRAY['a "b"', 'c', 'd', 'e', 'f'], '{0.1,0.4,0.3,0.15,0.05}')),
	(6, posterior.categorical(ARRAY['yes', 'no'], '{0.25,0.75}')),
	(7, posterior.normal(123456789, 0.00123)), (8, posterior.normal(1e100, 1e90)),
	(9, posterior.normal(0, 1e-30)), (10, NULL);
SET posterior.distribution_style = summary;
SELECT id, d FROM d ORDER BY id;
-- inside arrays and rows, through cursors, from prepared statements
SELECT ARRAY[d], ROW(id, d) FROM d WHERE id = 1;
BEGIN;
DECLARE c CURSOR FOR SELECT d FROM d WHERE id = 1;
FETCH c;
COMMIT;
-- everything that can be kept is full: casts, JSON, functions on text, COPY, columns of text
SELECT d::text AS text, concat(d) AS concat, format('%s', d) AS format, to_jsonb(d) AS jsonb,
	row_to_json(s) AS row FROM d s WHERE id = 1;
COPY (SELECT d FROM d WHERE id IN (1, 6) ORDER BY id) TO STDOUT;
CREATE TABLE kept AS SELECT id, d::text AS t, ARRAY[d]::text AS a FROM d;
SELECT bool_and(k.t::posterior.distribution OPERATOR(posterior.=) d.d) AS "round trip",
	min(a) FILTER (WHERE id = 1) AS array FROM kept k JOIN d USING (id);
DO $$ BEGIN RAISE NOTICE '%', posterior.normal(3.2, 0.5); END $$;
CREATE FUNCTION as_text(d posterior.distribution) RETURNS text LANGUAGE plpgsql AS $$
BEGIN RETURN d; END $$;
SELECT as_text(d) FROM d WHERE id = 1;
-- a summary is not read
SELECT 'mean 3.200, sd 0.500, 90 % in [2.378, 4.022]'::posterior.distribution;
SELECT '"no" 0.750, "yes" 0.250'::posterior.distribution;
SELECT '"normal(0, 1)"'::posterior.distribution;
RESET posterior.distribution_style;
SELECT d FROM d WHERE id = 1;
-- only a session can ask for it: a dump, which asks for nothing, is full
ALTER ROLE CURRENT_USER SET posterior.distribution_style = summary;
SELECT current_database() AS db \gset
ALTER DATABASE :"db" SET posterior.distribution_style = summary;
CREATE FUNCTION shorten() RETURNS void LANGUAGE sql SET posterior.distribution_style = summary
	AS 'SELECT';
SET posterior.distribution_style = short;
BEGIN;
SET LOCAL posterior.distribution_style = summary;
SELECT d FROM d WHERE id = 6;
COMMIT;
SELECT d FROM d WHERE id = 6;
DROP TABLE d, kept;
DROP FUNCTION as_text;
