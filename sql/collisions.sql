-- two contexts whose first rows have the same hash, which was made so: what is used is what is
-- equal, not what has an equal hash
SET posterior.model = 'tabular_small';
CREATE TABLE t AS SELECT i, i / 10.0::float8 AS x, sin(i) AS y FROM generate_series(1, 8) i;
-- 24 bytes of the numbers are two blocks of the hash; the second takes back what the first has
-- changed
CREATE TABLE twin AS
	SELECT i, coalesce((ARRAY[0.11521283683969337, -1.4643510739605796,
			7.317516800043259]::float8[])[i], x) AS x, y FROM t;
CREATE TABLE kept AS SELECT 't' AS name, posterior.context(y, x ORDER BY i) AS value FROM t
	UNION ALL SELECT 'twin', posterior.context(y, x ORDER BY i) FROM twin;
CREATE FUNCTION scratch(value posterior.context) RETURNS posterior.distribution STABLE
	LANGUAGE plpgsql SET posterior.cache = off AS $$ BEGIN RETURN posterior.predict(value, 0.45);
END $$;
SELECT name, posterior.predict(value, 0.45) OPERATOR(posterior.=) scratch(value) AS same FROM kept
	ORDER BY name;
SELECT name, posterior.predict(value, 0.45) OPERATOR(posterior.=) scratch(value) AS same FROM kept
	ORDER BY name DESC;
SELECT count(DISTINCT scratch(value)::text) AS answers FROM kept;
-- of a named context that has now these rows, now those
SELECT posterior.create_context('collision', 't', 'y', features => '{x}', order_by => 'i');
CREATE FUNCTION uncached() RETURNS posterior.distribution STABLE
	LANGUAGE plpgsql SET posterior.cache = off AS $$ BEGIN RETURN posterior.predict('collision', q)
	FROM (SELECT 0.45::float8 AS x) q; END $$;
CREATE FUNCTION same() RETURNS boolean STABLE LANGUAGE sql AS $$
	SELECT posterior.predict('collision', q) OPERATOR(posterior.=) uncached()
	FROM (SELECT 0.45::float8 AS x) q $$;
SELECT same();
UPDATE t SET x = twin.x FROM twin WHERE twin.i = t.i;
SELECT same();
INSERT INTO t VALUES (9, 1, 1);
SELECT same();
UPDATE t SET x = i / 10.0;
SELECT same();
DROP TABLE t, twin, kept;
DROP FUNCTION scratch, uncached, same;
RESET posterior.model;
