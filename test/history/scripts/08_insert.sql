INSERT INTO h (x, label, y) VALUES (random(), 'A', random());
SELECT check_causal('causal');
