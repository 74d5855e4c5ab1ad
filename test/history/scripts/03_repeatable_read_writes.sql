BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT check_causal('causal');
INSERT INTO h (x, y, z) VALUES (random(), random(), 13);
\sleep 3 ms
SELECT check_scalar();
SELECT check_all();
UPDATE h SET y = random() WHERE k = (SELECT max(k) FROM h);
SELECT check_causal('causal');
COMMIT;
SELECT check_causal('causal');
