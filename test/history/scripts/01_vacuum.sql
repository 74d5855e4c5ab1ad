VACUUM h;
SELECT check_causal('causal');
