BEGIN;
SAVEPOINT a;
INSERT INTO h (x, y, z) VALUES (random(), random(), 1);
ROLLBACK TO a;
INSERT INTO h (x, y, z) VALUES (random(), random(), 2);
SELECT check_causal('causal');
COMMIT;
