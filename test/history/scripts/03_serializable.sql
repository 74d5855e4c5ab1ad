BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT check_causal('causal');
INSERT INTO h (x, y, z) VALUES (random(), random(), 1);
SELECT check_causal('causal');
COMMIT;
