BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT check_causal('causal');
UPDATE h SET y = random() WHERE k = (SELECT max(k) FROM h);
SELECT check_all();
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT check_all();
\sleep 2 ms
SELECT check_all();
COMMIT;
