BEGIN;
LOCK TABLE family IN ACCESS EXCLUSIVE MODE;
ALTER TABLE kid_:client_id INHERIT family;
INSERT INTO kid_:client_id (x, y) VALUES (random(), random());
SELECT check_family();
ROLLBACK;
SELECT check_family();
