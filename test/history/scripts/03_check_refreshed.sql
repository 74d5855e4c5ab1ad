SELECT check_refreshed();
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT check_refreshed();
SELECT check_refreshed();
COMMIT;
