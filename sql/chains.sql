-- identities between the verbs that hold for any model: checked for one model file of each
-- architecture and context rule
CREATE TABLE t AS SELECT i, i / 8.0 - 1 AS x1, cos(i * 0.7) AS x2, sin(i * 0.3) AS x3,
	sin(i / 2.0) AS y FROM generate_series(1, 16) i;
CREATE TABLE q AS SELECT i, i / 5.0 AS x1, cos(i * 1.1) AS x2, sin(i * 0.4) AS x3, cos(i / 2.0) AS y
	FROM generate_series(1, 3) i;
-- one row per model and identity that fails
CREATE FUNCTION broken(model text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	x text;
	least_rows int;
	holds boolean;
BEGIN
	PERFORM posterior.load_model(model, current_setting('test.models') || '/' || model
			|| '.safetensors');
	PERFORM set_config('posterior.model', model, true);
	SELECT CASE coalesce(features, 3) WHEN 1 THEN 'x1' WHEN 2 THEN 'x1, x2' ELSE 'x1, x2, x3' END,
		min_rows INTO x, least_rows FROM posterior.models WHERE name = model;
	-- the evidence is the sum of what a growing frame says about its next row
	EXECUTE format('SELECT abs(e - s) < 1e-4 * (1 + abs(e)) AND n = 16 - %2$s
		FROM (SELECT posterior.log_evidence(y, %1$s ORDER BY i) AS e FROM t) e,
		(SELECT count(d) AS n, sum(posterior.log_pdf(d, y)) AS s
			FROM (SELECT y, posterior.regress(y, %1$s)
					OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d
					FROM t) w) s', x, least_rows) INTO holds;
	IF holds IS NOT TRUE THEN RETURN NEXT model || ': evidence'; END IF;
	-- rows without a target change nothing but their own answers
	EXECUTE format('SELECT bool_and(a.d OPERATOR(posterior.=) b.d) AND count(*) = 12 - %2$s FROM
		(SELECT i, posterior.regress(CASE WHEN i %% 4 > 0 THEN y END, %1$s)
				OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d FROM t) a
		JOIN (SELECT i, posterior.regress(y, %1$s)
				OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d FROM t
				WHERE i %% 4 > 0) b USING (i) WHERE b.d IS NOT NULL', x, least_rows) INTO holds;
	IF holds IS NOT TRUE THEN RETURN NEXT model || ': rows without a target'; END IF;
	-- a frame that is the whole partition, and one without the current row, are the context of
	-- their rows
	EXECUTE format('SELECT bool_and(d
			OPERATOR(posterior.=) (
				SELECT posterior.predict((SELECT posterior.context(y, %1$s ORDER BY i) FROM t),
				%1$s) FROM t WHERE t.i = w.i))
			AND bool_and(o OPERATOR(posterior.=) (
						SELECT posterior.predict((SELECT posterior.context(y, %1$s ORDER BY i)
						FROM t WHERE t.i <> w.i), %1$s) FROM t WHERE t.i = w.i))
		FROM (SELECT i, posterior.regress(y, %1$s)
				OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS d,
			posterior.regress(y, %1$s)
				OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
					EXCLUDE CURRENT ROW) AS o FROM t) w', x) INTO holds;
	IF holds IS NOT TRUE THEN RETURN NEXT model || ': frames'; END IF;
	-- the density of one row is that of its prediction
	EXECUTE format('SELECT count(*) = 3 AND bool_and(abs(l - p) < 1e-5 * (1 + abs(p)))
		FROM (SELECT posterior.log_density(ctx, y, %1$s) AS l,
			posterior.log_pdf(posterior.predict(ctx, %1$s), y) AS p
		FROM q, (SELECT posterior.context(y, %1$s) AS ctx FROM t) c GROUP BY ctx, y,
			%1$s) s', x) INTO holds;
	IF holds IS NOT TRUE THEN RETURN NEXT model || ': density of one row'; END IF;
	-- an average over orders lies between the orders
	EXECUTE format('SELECT a BETWEEN least(up, down) - 1e-9 AND greatest(up, down) + 1e-9
		FROM (SELECT posterior.log_density(ctx, y, %1$s ORDER BY i) AS up,
			posterior.log_density(ctx, y, %1$s ORDER BY i DESC) AS down,
		posterior.log_density_averaged(ctx, 20, 3, y, %1$s) AS a
			FROM q, (SELECT posterior.context(y, %1$s) AS ctx FROM t) c WHERE i < 3
			GROUP BY ctx) s', x) INTO holds;
	IF holds IS NOT TRUE THEN RETURN NEXT model || ': average over orders'; END IF;
	-- draws of the first row are draws of its prediction; more draws begin with the fewer
	EXECUTE format('SELECT (SELECT abs(avg(s.y) - posterior.mean(d)) < 0.25 * posterior.stddev(d)
			AND abs(stddev(s.y) / posterior.stddev(d) - 1) < 0.3
			FROM posterior.sample(ctx, r, 300, 11) s WHERE ord = 1)
		AND (SELECT bool_and(a.y = b.y) AND count(*) = 15 FROM posterior.sample(ctx, r, 7, 5) a
				JOIN posterior.sample(ctx, r, 5, 5) b USING (draw, ord))
		FROM (SELECT posterior.context(y, %1$s) AS ctx FROM t) c,
			(SELECT array_agg(ROW(%1$s) ORDER BY i) AS r FROM q) r,
			LATERAL (SELECT posterior.predict(ctx, %1$s) AS d FROM q WHERE i = 1) d', x) INTO holds;
	IF holds IS NOT TRUE THEN RETURN NEXT model || ': draws'; END IF;
	PERFORM posterior.drop_model(model);
END $$;
SELECT m.name, b.*
	FROM unnest(ARRAY['buffer_inclusive', 'buffer_sinks', 'head_bars', 'incremental_scaled',
			'packed_causal', 'packed_tnpa', 'prefix_causal_scaled', 'rows_causal',
	'rows_flat', 'two_stream_strict']) WITH ORDINALITY m (name, n), broken(m.name) b ORDER BY m.n;
DROP FUNCTION broken;
DROP TABLE t, q;
