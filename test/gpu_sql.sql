-- What test/gpu-sql asks: the same questions with posterior.device = cuda and with cpu, in one
-- session, and how far the answers are apart. Lines begin with `ok - ` or `not ok - `.
--
-- SPDX-License-Identifier: PostgreSQL
CREATE SCHEMA gpu;
SET search_path = gpu;

-- A number in [0, 1) that looks random.
CREATE FUNCTION noise(i int, k int) RETURNS float8 IMMUTABLE LANGUAGE sql AS
$$ SELECT sin(i * float8 '12.9898' + k * float8 '78.233') * float8 '43758.5453'
	- floor(sin(i * float8 '12.9898' + k * float8 '78.233') * float8 '43758.5453') $$;

-- Rows for every bundled model: numbers x1 to x8, one of them with gaps, a category, a boolean,
-- a target y and a label of them; u and v are a smooth function of one variable.
CREATE FUNCTION made(first int, last int) RETURNS TABLE (i int, x1 float8, x2 float8, x3 float8,
	x4 float8, x5 float8, x6 float8, x7 float8, x8 float8, gap float8, kind text, flag boolean,
	y float8, label text, u float8, v float8) LANGUAGE sql AS $$
	SELECT i, x1, x2, x3, noise(i, 4), noise(i, 5), noise(i, 6), noise(i, 7), noise(i, 8), gap,
		kind, flag, y, CASE WHEN y < -0.3 THEN 'low' WHEN y < 0.8 THEN 'middle' ELSE 'high' END,
		u, sin(1.7 * u) + 0.4 * cos(3 * u) + 0.3 * (noise(i, 12) - 0.5)
	FROM (SELECT *, 1.5 * sin(x1) + 0.5 * x2 * x3 + 0.5 * coalesce(gap, 0.3)
			+ CASE kind WHEN 'a' THEN 0.7 WHEN 'b' THEN -0.4 ELSE 0 END
			+ CASE WHEN flag THEN 0.2 ELSE 0 END + 0.6 * (noise(i, 11) - 0.5) AS y
		FROM (SELECT i, 4 * noise(i, 1) - 2 AS x1, 4 * noise(i, 2) - 2 AS x2,
				4 * noise(i, 3) - 2 AS x3, CASE WHEN i % 5 <> 0 THEN noise(i, 9) END AS gap,
				CASE WHEN i % 11 <> 3 THEN chr(97 + (i * 7 + i / 3) % 3) END AS kind,
				i % 3 = 1 AS flag, 4 * noise(i, 10) - 2 AS u
			FROM generate_series(first, last) i OFFSET 0) a OFFSET 0) b $$;

CREATE FUNCTION size(name text) RETURNS int LANGUAGE sql AS
$$ SELECT current_setting('test.' || name)::int $$;
CREATE TABLE rows AS SELECT * FROM made(1, size('rows') + size('queries') + 100);
CREATE TABLE worked (phase text, number int, statements bigint, lost bigint, wrong text);
CREATE SEQUENCE coming START 100000;
CREATE TABLE timed (at timestamptz DEFAULT clock_timestamp(), name text, device text, ms float8);

-- What the server has counted; asked again where it does not answer in time.
CREATE FUNCTION counted(OUT requests bigint, OUT failed bigint, OUT appends bigint,
	OUT builds bigint, OUT received bigint) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 50 LOOP
		SELECT s.requests, s.faults + s.fallbacks + s.failures, s.appends, s.builds,
			s.rows_received INTO requests, failed, appends, builds, received
		FROM posterior.stat_server s;
		EXIT WHEN requests IS NOT NULL;
		PERFORM pg_sleep(0.1);
	END LOOP;
END $$;

-- Errors of one kind: all but this share of the rows, rounded up, have to be below the limit. Says
-- the largest of those and the largest of all.
CREATE FUNCTION judged(name text, errors float8[], share numeric, lim float8, OUT good boolean,
	OUT said text) LANGUAGE sql AS $$
	SELECT coalesce(largest < 'NaN', false) AND coalesce(most <= lim, false),
		format('%s %s (%s)', name, trim(to_char(most, '9.9EEEE')),
			trim(to_char(largest, '9.9EEEE')))
	FROM (SELECT max(e) AS largest, percentile_disc(1 - ceil(share * cardinality(errors))::float8
			/ nullif(cardinality(errors), 0)) WITHIN GROUP (ORDER BY e) AS most
		FROM unnest(errors) e) s $$;

-- One question of both. query: rows (id, v float8[]); kind: what the numbers are. must: whether the
-- device has to have answered, as opposed to may have.
CREATE FUNCTION compare(title text, query text, kind text, must boolean) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	half boolean := current_setting('posterior.precision') = 'fp16';
	before record;
	after record;
	began timestamptz;
	took float8[] := '{}';
	device text;
	n int;
	m int;
	apart int;
	good boolean;
	said text := '';
	part record;
BEGIN
	CREATE TEMP TABLE IF NOT EXISTS answer (device text, id bigint, v float8[]);
	TRUNCATE answer;
	title := format('%s, %s', current_setting('posterior.precision'), title);
	before := counted();
	FOREACH device IN ARRAY '{cuda,cpu}'::text[] LOOP
		PERFORM set_config('posterior.device', device, false);
		began := clock_timestamp();
		BEGIN
			EXECUTE format('INSERT INTO answer SELECT %L, id, v FROM (%s) q', device, query);
		EXCEPTION WHEN OTHERS THEN
			PERFORM set_config('posterior.device', 'cuda', false);
			RETURN format('not ok - %s: by %s: %s: %s', title, device, sqlstate, sqlerrm);
		END;
		took := took || 1000 * extract(epoch FROM clock_timestamp() - began)::float8;
		IF device = 'cuda' THEN
			after := counted();
		END IF;
	END LOOP;
	PERFORM set_config('posterior.device', 'cuda', false);

	CREATE TEMP TABLE IF NOT EXISTS pair (g float8[], w float8[]);
	TRUNCATE pair;
	INSERT INTO pair SELECT g.v, w.v FROM answer g JOIN answer w USING (id)
	WHERE g.device = 'cuda' AND w.device = 'cpu';
	SELECT count(*), count(*) FILTER (WHERE cardinality(g) = cardinality(w)
			AND cardinality(w) > 0) INTO n, m FROM pair;
	SELECT count(*) FILTER (WHERE a.device = 'cuda') INTO apart FROM answer a;
	good := n > 0 AND n = m AND n = apart;
	FOR part IN
		-- the mean within one per cent of a deviation in 99 of 100 rows, or a ten-thousandth
		SELECT j.* FROM (SELECT array_agg(abs(g[1] - w[1]) / w[2]) AS means,
				array_agg(abs(g[2] / w[2] - 1)) AS sds, array_agg(abs(g[3] - w[3])) AS logs,
				array_agg((SELECT max(abs(g[k] - w[k])) FROM generate_series(4, cardinality(w)) k)
					/ w[2]) FILTER (WHERE cardinality(w) > 3) AS quantiles,
				ARRAY[abs(avg(g[3] - w[3]))] AS log
			FROM pair) e, LATERAL (
			SELECT * FROM judged('mean', means, CASE WHEN half THEN 0.01 ELSE 0 END,
				CASE WHEN half THEN 0.01 ELSE 1e-4 END)
			UNION ALL SELECT * FROM judged('sd', sds, CASE WHEN half THEN 0.01 ELSE 0 END,
				CASE WHEN half THEN 0.02 ELSE 1e-3 END)
			UNION ALL SELECT * FROM judged('log density', logs, CASE WHEN half THEN 0.5 ELSE 0 END,
				CASE WHEN half THEN 0.01 ELSE 1e-3 END)
			UNION ALL SELECT * FROM judged('its mean', log, 0,
				CASE WHEN half THEN 5e-3 ELSE 1e-3 END)
			UNION ALL SELECT * FROM judged('quantiles', quantiles, 0.01,
				CASE WHEN half THEN 0.03 ELSE 1e-3 END)
			WHERE quantiles IS NOT NULL) j
		WHERE kind = 'marginals'
		UNION ALL
		SELECT j.* FROM (SELECT array_agg((SELECT max(abs(g[k] - w[k]))
				FROM generate_subscripts(w, 1) k)) AS errors FROM pair) e,
			judged('probability', errors, CASE WHEN half THEN 0.01 ELSE 0 END,
				CASE WHEN half THEN 0.01 ELSE 1e-4 END) j
		WHERE kind = 'probabilities'
		UNION ALL
		-- a draw near the border of two components may take the other one
		SELECT j.* FROM (SELECT array_agg(abs(g[1] - w[1])) AS errors, stddev(w[1]) AS sd,
				ARRAY[abs(avg(g[1]) - avg(w[1])) / nullif(stddev(w[1]), 0)] AS mean,
				ARRAY[abs(stddev(g[1]) / nullif(stddev(w[1]), 0) - 1)] AS spread
			FROM pair) e, LATERAL (
			SELECT * FROM judged('draw', ARRAY(SELECT x / sd FROM unnest(errors) x),
				CASE WHEN half THEN 0.1 ELSE 0.01 END, CASE WHEN half THEN 0.02 ELSE 1e-3 END)
			UNION ALL SELECT * FROM judged('their mean', mean, 0,
				CASE WHEN half THEN 0.05 ELSE 0.01 END)
			UNION ALL SELECT * FROM judged('their sd', spread, 0,
				CASE WHEN half THEN 0.05 ELSE 0.01 END)) j
		WHERE kind = 'draws'
		UNION ALL
		SELECT j.* FROM (SELECT array_agg(CASE WHEN g = w THEN 0.0::float8 ELSE 1 END) AS errors
			FROM pair) e,
			judged('other labels', errors, CASE WHEN half THEN 0.05 ELSE 0.01 END, 0) j
		WHERE kind = 'labels'
		UNION ALL
		SELECT j.* FROM (SELECT array_agg(abs(g[1] - w[1]) / (1 + abs(w[1]) / 10)) AS errors
			FROM pair) e,
			judged('log density', errors, 0, CASE WHEN half THEN 0.1 ELSE 1e-3 END) j
		WHERE kind = 'density'
	LOOP
		good := good AND part.good;
		said := said || CASE WHEN said = '' THEN '' ELSE ', ' END || part.said
			|| CASE WHEN part.good THEN '' ELSE ' TOO FAR' END;
	END LOOP;
	IF must AND NOT coalesce(after.requests > before.requests, false) THEN
		good := false;
		said := said || '; NOT BY THE DEVICE';
	END IF;
	IF coalesce(after.failed <> before.failed, true) THEN
		good := false;
		said := said || format('; %s FAULTS', after.failed - before.failed);
	END IF;
	RETURN format('%s - %s: %s rows, %s; %s requests, %s builds, %s appends; %s ms, cpu %s ms',
		CASE WHEN coalesce(good, false) THEN 'ok' ELSE 'not ok' END, title, n, said,
		after.requests - before.requests, after.builds - before.builds,
		after.appends - before.appends, round(took[1]::numeric, 1), round(took[2]::numeric, 1));
EXCEPTION WHEN OTHERS THEN
	PERFORM set_config('posterior.device', 'cuda', false);
	RETURN format('not ok - %s: %s: %s', title, sqlstate, sqlerrm);
END $$;

-- Which columns each model is asked about: name, target, features.
CREATE FUNCTION variants(model text) RETURNS TABLE (variant text, target text, features text)
LANGUAGE sql AS $$
	SELECT v.* FROM posterior.models m, LATERAL (
		SELECT 'one column', 'v', 'u' WHERE m.features = 1
		UNION ALL SELECT 'numbers', CASE WHEN m.classes IS NULL THEN 'y' ELSE 'label' END,
			'x1, x2, x3' WHERE m.features IS NULL
		UNION ALL SELECT 'with gaps', CASE WHEN m.classes IS NULL THEN 'y' ELSE 'label' END,
			'x1, gap, kind, flag' WHERE m.features IS NULL AND m.takes_missing
			AND m.takes_categories) v(variant, target, features)
	WHERE m.name = model $$;

-- Statements with all questions to one model.
CREATE FUNCTION asked(title text, query text, kind text, must boolean) RETURNS text LANGUAGE sql AS
$$ SELECT format('SELECT compare(%L, %L, %L, %L)', title, query, kind, must) $$;
CREATE FUNCTION questions(model text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	m posterior.models;
	c record;
	labels boolean;
	n int := size('rows');
	q int := size('queries');
	ctx text;
	must boolean;
	first text;
	what text;
	numbers text;
BEGIN
	SELECT * INTO m FROM posterior.models WHERE name = model;
	labels := m.classes IS NOT NULL;
	PERFORM set_config(CASE WHEN labels THEN 'posterior.class_model' ELSE 'posterior.model' END,
		model, false);
	FOR c IN SELECT * FROM variants(model) LOOP
		first := format('%s, %s, ', model, c.variant);
		ctx := format('(SELECT posterior.context(%s, %s) AS c FROM (SELECT * FROM gpu.rows
				WHERE i <= %s ORDER BY i) r)', c.target, c.features, n);
		what := format('(SELECT array_agg(ROW(%s) ORDER BY i) FROM gpu.rows
				WHERE i > %s AND i <= %s)', c.features, n, '%s');
		-- joint questions about rows that lack cells are the session's, and so are those to models
		-- whose process learns in chains
		must := c.variant <> 'with gaps' AND model <> 'tabular';
		IF labels THEN
			numbers := format('(SELECT array_agg(probability ORDER BY label)
					FROM posterior.probabilities(p)) || ARRAY[posterior.probability(p, %s)]',
				c.target);
		ELSE
			numbers := format('ARRAY[posterior.mean(p), posterior.stddev(p),
				posterior.log_pdf(p, %s)] || posterior.quantile(p, ''{0.05,0.5,0.95}''::float8[])',
				c.target);
			RETURN NEXT asked(first || 'predict_summary', format(
				'SELECT ord AS id, ARRAY[mean, stddev, log_density] || quantiles AS v
					FROM posterior.predict_summary(%s, %s, ''{0.05,0.5,0.95}'',
						(SELECT array_agg(%s ORDER BY i) FROM gpu.rows WHERE i > %s AND i <= %s))',
				ctx, format(what, n + q), c.target, n, n + q), 'marginals', true);
		END IF;
		RETURN NEXT asked(first || 'predict', format('SELECT i AS id, %s AS v FROM
				(SELECT r.*, posterior.predict(c, %s) AS p FROM %s s, gpu.rows r
					WHERE i > %s AND i <= %s OFFSET 0) t',
				numbers, c.features, ctx, n, n + q),
			CASE WHEN labels THEN 'probabilities' ELSE 'marginals' END, true);
		IF labels THEN
			RETURN NEXT asked(first || 'sample_labels', format('SELECT draw * 1000 + ord AS id,
					ARRAY[ascii(label)]::float8[] AS v FROM posterior.sample_labels(%s, %s, %s, 7)',
					ctx, format(what, n + 8), size('draws')), 'labels', must);
		ELSE
			RETURN NEXT asked(first || 'sample', format('SELECT draw * 1000 + ord AS id,
					ARRAY[y] AS v FROM posterior.sample(%s, %s, %s, 7)',
					ctx, format(what, n + 8), size('draws')), 'draws', must);
		END IF;
		RETURN NEXT asked(first || 'log_density of 16 rows', format('SELECT 1 AS id,
				ARRAY[posterior.log_density(c, %s, %s ORDER BY i)] AS v FROM %s s, gpu.rows
				WHERE i > %s AND i <= %s', c.target, c.features, ctx, n, n + 16), 'density', must);
		RETURN NEXT asked(first || 'log_density_averaged over 8 orders', format('SELECT 1 AS id,
				ARRAY[posterior.log_density_averaged(c, 8, 3, %s, %s ORDER BY i)] AS v
				FROM %s s, gpu.rows WHERE i > %s AND i <= %s', c.target, c.features, ctx, n, n + 6),
			'density', must);
		RETURN NEXT asked(first || 'log_evidence', format('SELECT 1 AS id,
				ARRAY[posterior.log_evidence(%s, %s ORDER BY i)] AS v FROM gpu.rows
				WHERE i <= %s', c.target, c.features, size('frame')), 'density',
			c.variant <> 'with gaps');
		RETURN NEXT asked(first || 'a frame that grows', format('SELECT i AS id, %s AS v FROM
				(SELECT *, posterior.regress(%s, %s) OVER (ORDER BY i ROWS BETWEEN
					UNBOUNDED PRECEDING AND 1 PRECEDING) AS p FROM gpu.rows WHERE i <= %s) t
				WHERE i > 20', CASE WHEN labels THEN format('ARRAY[posterior.probability(p, %s)]',
				c.target) ELSE numbers END, c.target, c.features, size('frame')),
			CASE WHEN labels THEN 'probabilities' ELSE 'marginals' END, true);
		RETURN NEXT asked(first || 'a frame that slides', format('SELECT i AS id, %s AS v FROM
				(SELECT *, posterior.regress(%s, %s) OVER (ORDER BY i ROWS BETWEEN
					24 PRECEDING AND 1 PRECEDING) AS p FROM gpu.rows WHERE i <= 40) t
				WHERE i > 24', CASE WHEN labels THEN format('ARRAY[posterior.probability(p, %s)]',
				c.target) ELSE numbers END, c.target, c.features),
			CASE WHEN labels THEN 'probabilities' ELSE 'marginals' END, true);
	END LOOP;
END $$;

-- A table of its own with a named context for each model.
CREATE FUNCTION name_context(model text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	c record;
BEGIN
	SELECT * INTO c FROM variants(model) ORDER BY variant DESC LIMIT 1;
	PERFORM posterior.drop_context(name) FROM posterior.contexts x
		WHERE name = 'gpu_' || name_context.model;
	EXECUTE format('DROP TABLE IF EXISTS gpu.%I', 'rows_of_' || model);
	EXECUTE format('CREATE TABLE gpu.%I AS SELECT * FROM gpu.rows WHERE i <= %s',
		'rows_of_' || model, size('rows'));
	PERFORM posterior.create_context('gpu_' || model, ('gpu.rows_of_' || model)::regclass,
		c.target, features => string_to_array(c.features, ', '), order_by => 'i', model => model);
END $$;

-- One question about it, of `queries` rows.
CREATE FUNCTION ask_named(title text, model text, queries int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c record;
	n int := size('rows');
	labels boolean := (SELECT classes IS NOT NULL FROM posterior.models WHERE name = model);
BEGIN
	SELECT * INTO c FROM variants(model) ORDER BY variant DESC LIMIT 1;
	title := format('%s, a table of %s, %s', model, c.variant, title);
	IF labels THEN
		RETURN compare(title, format('SELECT ord AS id, (SELECT array_agg(probability
				ORDER BY label) FROM posterior.probabilities(prediction)) AS v
			FROM posterior.predict_rows(%L, ARRAY(SELECT r FROM gpu.rows r WHERE i > %s AND i <= %s
				ORDER BY i))', 'gpu_' || model, n, n + queries), 'probabilities', true);
	END IF;
	RETURN compare(title, format('SELECT ord AS id, ARRAY[mean, stddev, log_density] || quantiles
				AS v
			FROM posterior.predict_summary(%L, ARRAY(SELECT r FROM gpu.rows r WHERE i > %s
				AND i <= %s ORDER BY i), ''{0.1,0.9}'', ARRAY(SELECT %s FROM gpu.rows
				WHERE i > %s AND i <= %s ORDER BY i))', 'gpu_' || model, n, n + queries, c.target,
			n, n + queries), 'marginals', true);
END $$;

-- Rows that come.
CREATE FUNCTION insert_rows(model text, first int, last int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('INSERT INTO gpu.%I SELECT * FROM gpu.made(%s, %s)', 'rows_of_' || model,
		first, last);
END $$;

-- Predictions and inserts until a time; SQLSTATE 58000 is counted apart.
CREATE PROCEDURE work(phase text, seconds float8, number int, model text, verify boolean)
LANGUAGE plpgsql AS $$
DECLARE
	ends timestamptz := clock_timestamp() + make_interval(secs => seconds);
	statements bigint := 0;
	lost bigint := 0;
	inserted int := 0;
	k int;
	wrong text;
	said text;
	state text;
	p text;
BEGIN
	PERFORM set_config('posterior.cache', CASE WHEN verify THEN 'verify' ELSE 'on' END, false);
	COMMIT;
	WHILE clock_timestamp() < ends LOOP
		BEGIN
			EXECUTE format('SELECT posterior.predict(%L, r)::text FROM gpu.rows r
				WHERE i = %s', 'gpu_' || model, 1 + (number * 13 + statements) % 50) INTO p;
			IF p IS NULL OR p ~* 'nan|inf' THEN
				wrong := 'no number';
			END IF;
			statements := statements + 1;
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS said = MESSAGE_TEXT, state = RETURNED_SQLSTATE;
			IF state = '58000' THEN
				lost := lost + 1;
			ELSE
				wrong := coalesce(wrong, state || ': ' || said);
			END IF;
		END;
		COMMIT;
		IF inserted < 40 AND statements % 3 = 0 THEN
			BEGIN
				k := nextval('gpu.coming');
				PERFORM gpu.insert_rows(model, k, k);
				inserted := inserted + 1;
			EXCEPTION WHEN OTHERS THEN
				GET STACKED DIAGNOSTICS said = MESSAGE_TEXT, state = RETURNED_SQLSTATE;
				wrong := coalesce(wrong, 'INSERT: ' || state || ': ' || said);
			END;
			COMMIT;
		END IF;
	END LOOP;
	INSERT INTO gpu.worked VALUES (phase, number, statements, lost, wrong);
	COMMIT;
END $$;

-- Milliseconds of a statement.
CREATE FUNCTION timed(name text, device text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	began timestamptz;
	ms float8;
BEGIN
	PERFORM set_config('posterior.device', CASE WHEN device = 'none' THEN 'cpu' ELSE device END,
		false);
	began := clock_timestamp();
	EXECUTE statement;
	ms := 1000 * extract(epoch FROM clock_timestamp() - began);
	INSERT INTO gpu.timed (name, device, ms) VALUES (name, device, ms);
	RETURN format('# time %-45s %-5s %12s ms', name, device, round(ms::numeric, 3));
EXCEPTION WHEN query_canceled OR OTHERS THEN
	RETURN format('# time %-45s %-5s failed: %s: %s', name, device, sqlstate, sqlerrm);
END $$;
