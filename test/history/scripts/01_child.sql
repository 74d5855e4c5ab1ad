-- A child comes with its rows, is written by itself and goes. Under a lock that readers wait for: a
-- plan that was made before a child came does not read it, though its snapshot may show the rows.
BEGIN;
LOCK TABLE family IN ACCESS EXCLUSIVE MODE;
ALTER TABLE kid_:client_id INHERIT family;
COMMIT;
SELECT check_family();
INSERT INTO kid_:client_id (x, y) VALUES (random(), random());
SELECT check_family();
UPDATE kid_:client_id SET y = random();
SELECT check_family();
DELETE FROM kid_:client_id WHERE x < 0.7;
SELECT check_family();
BEGIN;
LOCK TABLE family IN ACCESS EXCLUSIVE MODE;
ALTER TABLE kid_:client_id NO INHERIT family;
COMMIT;
-- that there is no child any more is noticed by this alone
ANALYZE family;
SELECT check_family();
