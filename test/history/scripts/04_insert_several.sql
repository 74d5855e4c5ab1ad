INSERT INTO h (x, y, z) SELECT random(), random(), i FROM generate_series(1, 3) i;
INSERT INTO h (x, y, z) SELECT random(), NULL, i FROM generate_series(1, 3) i;
SELECT check_all();
