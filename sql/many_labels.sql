-- columns of many labels, which count as several columns, and targets of few values
\set SHOW_CONTEXT never
CREATE TABLE sales (id int PRIMARY KEY, shop text, size float8, sold float8, class text);
-- 40 shops, each of an effect of its own, in no order
INSERT INTO sales SELECT i, 'shop ' || i * 7 % 40, (i * 37 % 101) / 50.0,
		(i * 7 % 40 * 17 % 40) / 10.0 + (i * 37 % 101) / 100.0,
		CASE WHEN i * 7 % 40 * 17 % 40 < 20 THEN 'few' ELSE 'many' END
	FROM generate_series(1, 480) i;
CREATE VIEW shops AS SELECT DISTINCT shop, (substr(shop, 6)::int * 17 % 40) / 10.0 AS effect
	FROM sales;
-- what a shop sells is known of each of them
SELECT count(*) AS shops, max(abs(posterior.mean(posterior.predict(c, shop, 1.0)) - effect - 0.5))
	< 0.4 AS known
	FROM shops, (SELECT posterior.context(sold, shop, size ORDER BY id) AS c FROM sales) s;
SELECT count(*) AS shops,
	min(posterior.probability(posterior.predict(c, shop, 1.0),
		CASE WHEN effect < 2 THEN 'few' ELSE 'many' END)) > 0.5 AS known
	FROM shops, (SELECT posterior.class_context(class, shop, size ORDER BY id) AS c
		FROM sales) s;
-- other names, and another order of the columns, change nothing
SELECT bool_and(posterior.predict(c, shop, 0.3)::text = posterior.predict(d, md5(shop), 0.3)::text)
	AS named,
	bool_and(posterior.predict(c, shop, 0.3)::text = posterior.predict(e, 0.3, shop)::text)
	AS ordered
	FROM shops, (SELECT posterior.context(sold, shop, size ORDER BY id) AS c,
		posterior.context(sold, md5(shop), size ORDER BY id) AS d,
		posterior.context(sold, size, shop ORDER BY id) AS e FROM sales) s;
-- rows that come later, of shops that are known and of one that is not
SELECT posterior.create_context('sales', 'sales', target => 'sold', features => '{shop,size}');
INSERT INTO sales VALUES (481, 'shop 3', 0.5, 1.3, 'few'), (482, 'shop 99', 0.5, 9.0, 'many'),
	(483, NULL, 0.5, 2.0, 'few');
SELECT count(*) AS shops,
	max(abs(posterior.mean(posterior.predict('sales', s)) - effect - size / 2)) < 0.4 AS known
	FROM sales s JOIN shops USING (shop) WHERE id <= 480 AND id % 12 = 0;
SELECT id, posterior.stddev(posterior.predict('sales', s)) > 0.5 AS unsure
	FROM sales s WHERE id > 480 ORDER BY id;
SELECT posterior.drop_context('sales');
-- counts: answers keep to them, and the mean is between
CREATE TABLE visits AS SELECT i AS id, sin(i) AS x, cos(3 * i) AS z,
	floor(2 + 2 * sin(i) * cos(3 * i) + (i * 61 % 97) / 97.0) AS n FROM generate_series(1, 600) i;
SELECT corr(posterior.mean(d), n) > 0.9 AS known,
	bool_and(posterior.mean(d) BETWEEN -0.5 AND 4.5) AS between
	FROM (SELECT n, posterior.predict(c, x, z) AS d FROM visits,
		(SELECT posterior.context(n, x, z ORDER BY id) AS c FROM visits WHERE id <= 300) s
		WHERE id > 300) p;
DROP TABLE visits;
DROP VIEW shops;
DROP TABLE sales;
