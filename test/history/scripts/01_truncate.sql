BEGIN;
TRUNCATE h;
INSERT INTO h (x, label, y) SELECT random(), chr(65 + i % 3), random()
	FROM generate_series(1, 20) i;
SELECT check_causal('causal');
COMMIT;
SELECT check_all();
