BEGIN;
SET LOCAL session_replication_role = replica;
INSERT INTO h (x, y, z) VALUES (random(), random(), 1);
COMMIT;
SELECT check_causal('causal');
