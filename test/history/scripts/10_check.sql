SELECT check_causal('causal');
SELECT check_all();
