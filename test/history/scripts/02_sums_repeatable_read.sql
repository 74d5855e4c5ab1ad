BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT check_sums();
\sleep 5 ms
SELECT sums_warm();
SELECT check_sums();
INSERT INTO h (x, y, z) VALUES (random(), random(), 4);
SELECT check_sums();
COMMIT;
SELECT check_sums();
