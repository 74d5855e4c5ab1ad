\set pause random(1, 20)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT check_all();
\sleep :pause ms
SELECT check_all();
\sleep :pause ms
SELECT check_all();
COMMIT;
