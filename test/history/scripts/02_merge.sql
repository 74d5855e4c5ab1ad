BEGIN;
MERGE INTO h USING (SELECT max(k) + 1 - g AS k, random() AS x FROM h, generate_series(0, 3) g
		GROUP BY g) s ON h.k = s.k
	WHEN MATCHED AND s.x < 0.3 THEN DELETE WHEN MATCHED THEN UPDATE SET y = s.x WHEN NOT MATCHED
		THEN INSERT (x, y, z) VALUES (s.x, s.x, 5);
SELECT check_causal('causal');
COMMIT;
MERGE INTO h USING (SELECT random() AS x) s ON false WHEN NOT MATCHED THEN INSERT (x, y, z)
	VALUES (s.x, s.x, 6);
SELECT check_all();
