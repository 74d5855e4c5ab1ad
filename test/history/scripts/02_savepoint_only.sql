BEGIN;
SAVEPOINT a;
INSERT INTO h (x, y, z) VALUES (random(), random(), 1);
ROLLBACK TO a;
SELECT check_causal('causal');
COMMIT;
