BEGIN;
INSERT INTO h (x, y, z) VALUES (random(), random(), 1);
UPDATE h SET y = y WHERE k = (SELECT max(k) FROM h);
PREPARE TRANSACTION 'rollback :client_id';
\sleep 2 ms
ROLLBACK PREPARED 'rollback :client_id';
SELECT check_causal('causal');
