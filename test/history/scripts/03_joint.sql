SELECT check_joint('causal'), check_causal('causal');
BEGIN;
INSERT INTO h (x, y, z) VALUES (random(), random(), 12);
SELECT check_joint('causal');
SELECT check_joint('read'), check_causal('causal');
COMMIT;
SELECT check_joint('causal');
