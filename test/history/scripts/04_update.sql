UPDATE h SET y = random() WHERE k = (SELECT k FROM h ORDER BY random() LIMIT 1);
SELECT check_causal('causal');
