BEGIN;
INSERT INTO h (x, y, z) VALUES (random(), random(), 1);
PREPARE TRANSACTION 'commit :client_id';
\sleep 2 ms
COMMIT PREPARED 'commit :client_id';
SELECT check_causal('causal');
