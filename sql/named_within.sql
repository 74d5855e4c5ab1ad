-- what is asked in the middle of a statement that writes the table: rows are there that no trigger
-- has told of yet
\i sql/include/chain.sql
CREATE FUNCTION scratch() RETURNS posterior.distribution STABLE
	LANGUAGE plpgsql SET posterior.model = 'chain' SET posterior.cache = off AS $$
BEGIN
	RETURN posterior.predict((SELECT posterior.context(y, x, z ORDER BY k)
				FROM (SELECT * FROM t UNION ALL SELECT NULL, 1, 1, NULL) none), 0.5::float8, 2);
END $$;
-- the rows that this statement's snapshot shows, and whether the context answers from these
CREATE FUNCTION same() RETURNS text STABLE LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT count(*) FROM t) || CASE
		WHEN scratch() OPERATOR(posterior.=) posterior.predict('c', q) THEN ' same' ELSE ' differ'
		END FROM (SELECT 0.5::float8 AS x, 2 AS z) q;
END $$;
-- a trigger's statements see what the statement that fires it has done so far
CREATE FUNCTION ask() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	answer := same();
	RAISE NOTICE '% % %: %', TG_WHEN, TG_LEVEL, TG_OP, answer;
	RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE FUNCTION asked(k int) RETURNS float8 LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE 'value of %: %', k, same();
	RETURN k;
END $$;
-- each statement begins with a proof of what is there, made by two transactions before it
CREATE PROCEDURE prove() LANGUAGE plpgsql AS $$
BEGIN
	PERFORM same();
	COMMIT;
	INSERT INTO other VALUES (1);
	COMMIT;
	PERFORM same();
	COMMIT;
END $$;
CREATE TRIGGER ask BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION ask();
CREATE TRIGGER ask_first BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON t FOR EACH STATEMENT
	EXECUTE FUNCTION ask();
CREATE TRIGGER a_first AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION ask();
CREATE TRIGGER a_last AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON t FOR EACH STATEMENT
	EXECUTE FUNCTION ask();

CALL prove();
INSERT INTO t (k, x, y) SELECT i, 1, -i FROM generate_series(11, 13) i;
CALL prove();
UPDATE t SET y = y + 100 WHERE k IN (2, 3, 12);
CALL prove();
DELETE FROM t WHERE k IN (4, 5);
CALL prove();
INSERT INTO t (k, x, y) VALUES (2, 1, 1), (14, 1, 1), (3, 1, 1) ON CONFLICT (k) DO UPDATE SET y = 0;
CALL prove();
MERGE INTO t USING (VALUES (1), (15)) v (i) ON k = i WHEN MATCHED THEN DELETE WHEN NOT MATCHED
	THEN INSERT (k, x, y) VALUES (i, 1, 1);
CALL prove();
COPY t (k, x, y) FROM stdin (FORMAT csv);
16,0.5,1
17,0.6,2
18,0.7,3
\.
CALL prove();
BEGIN;
TRUNCATE t;
ROLLBACK;
SELECT same();

-- no triggers but those of the context
DROP TRIGGER ask ON t;
DROP TRIGGER ask_first ON t;
DROP TRIGGER a_first ON t;
DROP TRIGGER a_last ON t;
-- functions of a statement's values and of what it returns, with snapshots of their own
CALL prove();
INSERT INTO t (k, x, y) SELECT i, asked(i), 1 FROM generate_series(20, 22) i RETURNING asked(-k);
CALL prove();
UPDATE t SET x = asked(k) WHERE k IN (20, 21) RETURNING asked(-k);
-- in the defaults and checks of the table, and in queries of the same statement, which see nothing
-- of it
ALTER TABLE t ALTER COLUMN x SET DEFAULT asked(0),
	ADD CONSTRAINT fine CHECK (asked(100) > 0) NOT VALID;
CALL prove();
INSERT INTO t (k, y) VALUES (23, 1), (24, 1);
CALL prove();
WITH i AS (INSERT INTO t (k, x, y) VALUES (25, 1, 1) RETURNING k),
	d AS (DELETE FROM t WHERE k = 6 RETURNING k) SELECT i.k, d.k, same() FROM i, d;
SELECT same();
-- a cursor's rows are written while it is open
CALL prove();
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT i, same() FROM generate_series(1, 3) i LOOP
		INSERT INTO t (k, x, y) VALUES (r.i + 30, 1, 1);
		RAISE NOTICE '% outside, % inside', r.same, same();
	END LOOP;
END $$;
SELECT same();
DROP TABLE t, other;
DROP FUNCTION ask, asked, scratch, same;
DROP PROCEDURE prove;
SELECT posterior.drop_model('chain');
