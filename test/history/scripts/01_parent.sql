UPDATE parent SET y = random() WHERE k = 3;
SELECT check_inherited();
