-- joint draws and joint densities
SET posterior.model = 'gp1d';
CREATE TABLE t AS SELECT i, i / 5.0 - 2 AS x, sin(i / 2.5) AS y FROM generate_series(1, 12) i;
CREATE TABLE q AS SELECT i, 0.8 + i / 5.0 AS x, sin((0.8 + i / 5.0) * 2) AS y
	FROM generate_series(1, 6) i;
CREATE TABLE c AS SELECT posterior.context(y, x) AS ctx FROM t;
-- predictions for an array of rows are those for each row alone
SELECT count(*), bool_and(p.prediction::text = posterior.predict(ctx, q.x)::text) AS same
FROM c, posterior.predict_rows(ctx, ARRAY(SELECT x FROM q ORDER BY i)) p JOIN q ON q.i = p.ord;
SELECT count(*) FROM c, posterior.predict_rows(ctx, ARRAY(SELECT ROW(x) FROM q));
SELECT count(*) FROM c, posterior.predict_rows(ctx, ARRAY[]::float8[]);
-- the same seed, the same draws, whatever the number of draws
SELECT count(*), min(draw), max(draw), min(ord), max(ord)
	FROM c, posterior.sample(ctx, ARRAY(SELECT x FROM q ORDER BY i), 20, 42);
SELECT bool_and(a.y = b.y) AS same, count(*)
	FROM c, posterior.sample(ctx, ARRAY(SELECT x FROM q ORDER BY i), 20, 42) a JOIN
	LATERAL posterior.sample(c.ctx, ARRAY(SELECT x FROM q ORDER BY i), 3, 42) b USING (draw, ord);
SELECT bool_or(a.y = b.y) AS same FROM c, posterior.sample(ctx, ARRAY[1.0, 1.5], 5, 1) a
	JOIN LATERAL posterior.sample(c.ctx, ARRAY[1.0, 1.5], 5, 2) b USING (draw, ord);
-- two questions for nearly the same place have nearly the same answer in each draw, though draws
-- differ
SELECT corr(a.y, b.y) > 0.8 AS together, stddev(a.y) > 0.2 AS apart
FROM c, posterior.sample(ctx, ARRAY[1.8, 1.82], 400, 7) a
	JOIN LATERAL posterior.sample(c.ctx, ARRAY[1.8, 1.82], 400, 7) b ON a.draw = b.draw
	AND a.ord = 1 AND b.ord = 2;
-- the joint density is the product of conditionals, each on the rows before it; without ORDER BY
-- the order is canonical
SELECT abs(posterior.log_density(ctx, y, x ORDER BY i)
		- (SELECT sum(posterior.log_pdf(posterior.predict(before.ctx, q.x), q.y)) FROM q,
	LATERAL (SELECT posterior.context(y, x ORDER BY o, i) AS ctx
			FROM (SELECT 1 AS o, i, x, y FROM t UNION ALL SELECT 2, i, x, y FROM q p
				WHERE p.i < q.i) r) before)) < 0.5 AS near
FROM c, q GROUP BY ctx;
SELECT posterior.log_density(ctx, y, x) = (SELECT posterior.log_density(ctx, y, x)
		FROM c, (SELECT * FROM q ORDER BY i DESC) r GROUP BY ctx) AS canonical
	FROM c, q GROUP BY ctx;
SELECT posterior.log_density(ctx, y, x ORDER BY i) <> posterior.log_density(ctx, y, x
		ORDER BY i DESC) AS order_matters FROM c, q GROUP BY ctx;
SELECT posterior.log_density(ctx, y, x) = posterior.log_pdf(posterior.predict(ctx, 1.0),
		sin(2.0)) AS one_row FROM c, q WHERE i = 1 GROUP BY ctx, i, x HAVING x = 1.0;
SELECT posterior.log_density_averaged(ctx, 64, 1, y, x) = posterior.log_density_averaged(ctx, 64, 1,
		y, x) AS same,
	abs(posterior.log_density_averaged(ctx, 64, 1, y, x)
			- posterior.log_density_averaged(ctx, 64, 2, y, x)) < 1 AS near FROM c, q GROUP BY ctx;
SELECT posterior.log_density(ctx, CASE WHEN i = 3 THEN NULL ELSE y END, x
		ORDER BY i) = (SELECT posterior.log_density(ctx, y, x ORDER BY i) FROM c, q WHERE i <> 3
		GROUP BY ctx) AS null_is_left_out
FROM c, q GROUP BY ctx;
SELECT posterior.log_density(ctx, y, x) IS NULL AS no_rows FROM c, q WHERE false;
-- under a causal model, where no row's encoding depends on later ones, it is the product to the
-- last digits
SELECT posterior.load_model('incremental', current_setting('test.models')
		|| '/incremental.safetensors');
SET posterior.model = 'incremental';
SELECT abs(posterior.log_density(ctx2, y, x, i ORDER BY i)
		- (SELECT sum(posterior.log_pdf(posterior.predict(before.ctx, q.x, q.i), q.y)) FROM q,
	LATERAL (SELECT posterior.context(y, x, i ORDER BY o, i) AS ctx
			FROM (SELECT 1 AS o, i, x, y FROM t UNION ALL SELECT 2, i, x, y FROM q p
				WHERE p.i < q.i) r) before)) < 1e-4 AS equal
FROM (SELECT posterior.context(y, x, i ORDER BY i) AS ctx2 FROM t) s, q GROUP BY ctx2;
SET posterior.model = 'gp1d';
SELECT posterior.drop_model('incremental');
-- the buffer model merges a full block; a chain longer than the buffer works and its draws do not
-- depend on the batch
SELECT posterior.load_model('buffer', current_setting('test.models')
		|| '/buffer_inclusive.safetensors');
SET posterior.model = 'buffer';
SELECT count(*), bool_and(a.y = b.y) AS same
	FROM c, posterior.sample(ctx, ARRAY(SELECT x FROM q ORDER BY i), 4, 3) a
	JOIN LATERAL posterior.sample(c.ctx, ARRAY(SELECT x FROM q ORDER BY i), 2, 3) b
	USING (draw, ord);
SET posterior.model = 'gp1d';
SELECT posterior.drop_model('buffer');
-- bad questions
SELECT * FROM c, posterior.sample(ctx, ARRAY[1.0], 0);
SELECT * FROM c, posterior.sample(ctx, ARRAY[1.0], -3);
SELECT * FROM c, posterior.sample(ctx, ARRAY[1.0, 2.0], 1000000000);
SELECT count(*) FROM c, posterior.sample(ctx, ARRAY[]::float8[], 10);
SELECT * FROM c, posterior.sample(ctx, ARRAY[1.0, NULL]);
SELECT * FROM c, posterior.sample(ctx, ARRAY[ROW(1.0), NULL]);
SELECT * FROM c, posterior.sample(ctx, ARRAY[ROW(1.0, 2)]);
SELECT * FROM c, posterior.sample(ctx, ARRAY['a']);
SELECT posterior.log_density_averaged(ctx, 0, 1, y, x) FROM c, q GROUP BY ctx;
SELECT posterior.log_density(CASE WHEN i = 1 THEN ctx ELSE (SELECT posterior.context(y, x) FROM q)
		END, y, x) FROM c, q;
SELECT posterior.log_density(NULL, y, x) FROM q;
SELECT posterior.predict(NULL, 1) IS NULL;
DROP TABLE t, q, c;
