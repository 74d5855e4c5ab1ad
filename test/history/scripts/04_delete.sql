DELETE FROM h WHERE k IN (SELECT k FROM h ORDER BY random() LIMIT 3)
	AND (SELECT count(*) FROM h) > 25;
SELECT check_all();
