INSERT INTO h (k, x, y, z) OVERRIDING SYSTEM VALUE SELECT k, random(), random(), 8
	FROM (SELECT k FROM h ORDER BY random() LIMIT 2) s
	ON CONFLICT (k) DO UPDATE SET y = excluded.y;
SELECT check_causal('causal');
BEGIN;
INSERT INTO h (k, x, y, z) OVERRIDING SYSTEM VALUE SELECT max(k), random(), random(), 9
	FROM h ON CONFLICT (k) DO NOTHING;
SELECT check_scalar();
INSERT INTO h (x, y, z) VALUES (random(), random(), 10) ON CONFLICT (k) DO NOTHING;
SELECT check_scalar();
COMMIT;
SELECT check_all();
