SELECT violate();
SELECT check_causal('causal');
