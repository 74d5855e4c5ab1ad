INSERT INTO family (x, y) VALUES (random(), random());
SELECT check_family();
DELETE FROM ONLY family WHERE k < (SELECT max(k) - 30 FROM ONLY family);
SELECT check_family();
