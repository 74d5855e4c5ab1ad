DELETE FROM h WHERE k < (SELECT max(k) - 80 FROM h);
SELECT check_causal('causal');
