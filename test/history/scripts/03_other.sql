BEGIN;
INSERT INTO other VALUES (1);
SELECT check_causal('causal');
COMMIT;
