\set kind random(1, 14)
SELECT check_kind(:kind);
BEGIN;
INSERT INTO h (x, y, z) VALUES (random(), random(), 14);
SELECT check_kind(:kind);
SAVEPOINT a;
UPDATE h SET y = random() WHERE k = (SELECT max(k) FROM h);
SELECT check_kind(:kind);
ROLLBACK TO a;
SELECT check_kind(:kind);
COMMIT;
SELECT check_kind(:kind);
