INSERT INTO via SELECT random() FROM generate_series(1, 2);
