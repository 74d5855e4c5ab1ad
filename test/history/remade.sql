-- What clients do in a database that is dropped and made again all the time, under the same OID.
SELECT check_causal('causal');
INSERT INTO h (x, y, z) VALUES (random(), random(), 1);
SELECT check_causal('causal');
SELECT check_causal('filtered', '-Infinity', 0.5), check_window();
