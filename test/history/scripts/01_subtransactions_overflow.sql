BEGIN;
SELECT many_subtransactions(100);
ROLLBACK;
SELECT check_causal('causal');
