BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT check_altered();
\sleep 3 ms
SELECT check_altered();
COMMIT;
SELECT check_altered();
