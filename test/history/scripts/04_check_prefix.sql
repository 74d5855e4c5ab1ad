SELECT check_prefix();
SELECT check_inherited();
