BEGIN;
INSERT INTO h (x, y, z) VALUES (random(), random(), 1);
SELECT check_all();
UPDATE h SET y = 0 WHERE k = (SELECT max(k) FROM h);
SELECT check_causal('causal');
COMMIT;
SELECT check_causal('causal');
