-- sums_drift: a refresh is offered when the rows of a context that keeps sums have moved away
CREATE SCHEMA sums_drift;
SET search_path = sums_drift, public;
SELECT posterior.load_model('sums', current_setting('test.models') || '/sums.safetensors')
	IS NOT NULL AS loaded;
SET posterior.model = 'sums';
CREATE TABLE reading (k int, a float8, c text, y float8);
-- rows whose numbers have mean 0 and variance 1/2 in any hundred of them
CREATE FUNCTION more(first int, last int, a float8 = 0, c text = 'x', y float8 = 0) RETURNS void
LANGUAGE sql AS $$
	INSERT INTO reading SELECT i, sin(i * 2 * pi() / 100) + a, coalesce(c, 'z' || i),
		cos(i * 2 * pi() / 100) + y FROM generate_series(first, last) i $$;
SELECT more(1, 400);
SELECT posterior.create_context('drift', 'reading', 'y', '{a,c}');
SELECT posterior.warm_context('drift');
-- rows like those before are no drift
SELECT more(401, 1600);
SELECT posterior.warm_context('drift');
-- a target that moves: the mean by 3/4 of 4 = 3, or 4.24 standard deviations of then
BEGIN;
UPDATE reading SET y = y + 4 WHERE k > 400;
SELECT posterior.warm_context('drift');
ROLLBACK;
-- a column that moves, and is scaled by what it was
BEGIN;
UPDATE reading SET a = a - 2;
SELECT posterior.warm_context('drift');
ROLLBACK;
-- cells that are missing, and categories that the basis does not know: three quarters of all
BEGIN;
UPDATE reading SET a = NULL WHERE k > 400;
SELECT posterior.warm_context('drift');
ROLLBACK;
BEGIN;
UPDATE reading SET c = 'never seen ' || k WHERE k > 400;
SELECT posterior.warm_context('drift');
-- made of the rows as they are, nothing has moved
SELECT posterior.refresh_context('drift');
SELECT posterior.warm_context('drift');
ROLLBACK;
-- eight times as many rows as the fit is of
SELECT more(1601, 3200);
SELECT posterior.warm_context('drift');
SELECT posterior.refresh_context('drift');
SELECT posterior.warm_context('drift');
-- and so if they go again
DELETE FROM reading WHERE k > 3100;
SELECT posterior.warm_context('drift');
SET client_min_messages = warning;
DROP SCHEMA sums_drift CASCADE;
SELECT posterior.drop_model('sums');
