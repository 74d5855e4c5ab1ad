SELECT check_family();
SELECT check_family();
