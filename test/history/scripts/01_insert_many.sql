INSERT INTO h (x, y, z) SELECT random(), random(), i FROM generate_series(1, 30) i;
SELECT check_causal('causal');
