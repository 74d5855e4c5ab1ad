\set k random(-3, 0)
INSERT INTO h (k, x, y, z) OVERRIDING SYSTEM VALUE VALUES (:k, random(), random(), 11)
	ON CONFLICT (k) DO NOTHING;
SELECT check_all();
