BEGIN;
INSERT INTO h (x, y, z) VALUES (random(), random(), 1);
SELECT check_causal('causal');
ROLLBACK;
SELECT check_causal('causal');
