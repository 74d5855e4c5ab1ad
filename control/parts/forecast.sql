-- ---- forecast, backtest -------------------------------------------------------------------------

-- Exponential smoothing: of each pair the value `steps` after the first `origins` ones, with
-- parameters chosen by the first `until` values. form: 0 damped trend and season, of logarithms
-- where those are likelier; 1 of the values themselves, with first states of maximal likelihood;
-- 2 without a trend; 3 a random walk with drift; 4 one of whole seasons.
CREATE FUNCTION posterior_internal.smooth(y float8[], season integer, until integer,
	origins integer[], steps integer[], form integer) RETURNS posterior.distribution[]
	AS 'MODULE_PATHNAME', 'posterior_smooth' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10000;
COMMENT ON FUNCTION posterior_internal.smooth(float8[], integer, integer, integer[],
	integer[], integer) IS
	'exponential smoothing with additive season, with or without damped trend; random walks';

-- A pool that is to be wider or narrower. It has a peak where most of its members agree and few
-- components far to one side: the peak stays where it is, and the mean, which totals are made of.
CREATE FUNCTION posterior_internal.widen(d posterior.distribution,
	factor float8) RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_widen' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION posterior_internal.widen(posterior.distribution, float8) IS
	'a mixture that is so many times as wide about its median, with its mean';

-- What forecasts are made from. A far value would be the last one of many rows, a part of means,
-- and nearly all that smoothing and random walks know of how far values go. A column of x, but
-- the first `yearly` ones, may foretell it; then it stays.
CREATE FUNCTION posterior_internal.near_series(y float8[], x float8[] DEFAULT NULL,
	yearly integer DEFAULT 0) RETURNS float8[]
	AS 'MODULE_PATHNAME', 'posterior_near_series' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION posterior_internal.near_series(float8[], float8[], integer) IS
	'a series with NaN in place of values that are far from all others, as the model says it, and '
	'that no column foretells';

-- Squares of values, and of their differences, must be numbers, and not 0.
CREATE FUNCTION posterior_internal.check_size(y float8[]) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	largest float8 := (SELECT max(abs(v)) FROM unnest(y) v WHERE v <> 'NaN');
BEGIN
	IF largest > 1e140 OR largest > 0 AND largest < 1e-75 THEN
		RAISE EXCEPTION 'the values of a series are too %',
				CASE WHEN largest > 1 THEN 'large' ELSE 'small' END
			USING ERRCODE = 'numeric_value_out_of_range',
				DETAIL = format('The largest is %s in absolute value; forecasts are made of 1e-75 '
					'to 1e+140, and of 0.', ltrim(to_char(largest, '9.9EEEE'))),
				HINT = format('Take another unit in a view, as in SELECT time, y * %s AS y, and '
					'name the view instead; or leave out the values that are wrong.',
					CASE WHEN largest > 1 THEN '1e-200' ELSE '1e+200' END);
	END IF;
END $$;
COMMENT ON FUNCTION posterior_internal.check_size(float8[]) IS
	'an error where values of a series are too large or too small to be forecast';

-- The ends of the parts of a history that forecasts are learned from, the last one all of it.
CREATE FUNCTION posterior_internal.forecast_cuts(first integer, n integer) RETURNS integer[]
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN n - first >= 40 THEN ARRAY[first + (n - first) * 2 / 3,
		first + (n - first) * 5 / 6, n]
		WHEN n - first >= 20 THEN ARRAY[first + (n - first) * 7 / 10, n] ELSE ARRAY[n] END
$$;
COMMENT ON FUNCTION posterior_internal.forecast_cuts(integer, integer) IS
	'ends of the parts of a history that forecasts are learned from';

-- The next steps of one series. y: its values in time order, NaN where there is none; x: for every
-- step of y and the `horizon` after it, known columns, the first `yearly` of them the year's
-- calendar; foretold: not all of them are the calendar.
--
-- Each past step is one row of a context: its value relative to what was known `h` steps before, h
-- running through 1 … horizon. Five such regressions, which differ in what they are relative to and
-- in one or two columns, are asked and pooled with five forms of smoothing, spec 0 … -4. Form 1 has
-- a share of its own; the others share the rest by their mean CRPS on two later parts of the
-- history, predicted from what was before them, the regressions as one with a share of four. Where
-- columns foretell something, which regressions alone can know, form 1 shares like the others, as
-- four of them, and the regressions as six. The same parts widen or narrow the pool. Its variance
-- grows by h / n beyond that, n being the steps that it is learned from: a trend that is estimated
-- is not known, and of a random walk whose drift is estimated the variance grows so (Hyndman and
-- Athanasopoulos, "Forecasting: Principles and Practice", section 5.5, third edition).
CREATE FUNCTION posterior_internal.forecast_steps(y float8[], x float8[], yearly integer,
	season integer, horizon integer, foretold boolean, paths boolean DEFAULT false,
		OUT step integer, OUT prediction posterior.distribution, OUT persistence float8)
	RETURNS SETOF record
	LANGUAGE plpgsql VOLATILE SET jit = off SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	n integer := cardinality(y);
	usual float8[];
	rows integer := 512;
	width integer := greatest(season, 4);
	first integer := greatest(n - rows, 1);
	present integer;
	lowest float8;
	cuts integer[];
	xs text := '';
	year_xs text := '';
	lags text := '';
	seasonal text := '';
	shape record;
	columns text;
	parts text := '';
	spec integer := 0;
BEGIN
	-- what a column foretells is learned from, but nothing starts from it
	usual := posterior_internal.near_series(y);
	y := posterior_internal.near_series(y, x, yearly);
	PERFORM posterior_internal.check_size(y);
	SELECT count(*) FILTER (WHERE i > first), min(v) INTO present, lowest
		FROM unnest(y) WITH ORDINALITY u (v, i) WHERE v <> 'NaN' AND i > first - rows;
	cuts := posterior_internal.forecast_cuts(first, n);
	FOR i IN 1 .. coalesce(array_length(x, 2), 0) LOOP
		IF i <= yearly THEN
			year_xs := year_xs || format(', x%s', i);
		ELSE
			xs := xs || format(', x%s', i);
		END IF;
		lags := lags || format(', nullif($2[target][%s], ''NaN'') AS x%s', i, i);
	END LOOP;
	IF season > 1 THEN
		seasonal :=
			', (same - @) / $, (same2 - @) / $, (same - past) / $, (same2 - past2) / $, (usual - '
			'@) / $, change / $';
	END IF;
	FOR shape IN
		SELECT * FROM (VALUES ('last', '1', false, false), ('last', '1', true, false), ('last',
			'size', false, false), ('last', '1', true, true), ('mean1', '1', false, false))
			s (anchor, scale, year, level)
		WHERE (scale = '1' OR lowest > 0) AND (level OR NOT year OR year_xs <> '')
	LOOP
		columns := 'h' || seasonal ||
			format(', (%s - @) / $, (mean2 - @) / $, (lag1 - @) / $, (lag2 - @) / $, '
				'(lag3 - @) / $',
			CASE shape.anchor WHEN 'last' THEN 'mean1' ELSE 'last' END)
			|| CASE WHEN shape.level THEN ', @' ELSE '' END || xs || CASE
				WHEN shape.year THEN year_xs ELSE '' END;
		columns := replace(replace(columns, '@', shape.anchor), '$', shape.scale);
		spec := spec + 1;
		parts := parts || CASE WHEN spec > 1 THEN ' UNION ALL ' ELSE '' END || format(
			$q$SELECT %1$s AS spec, q.role, q.cut, q.target[p.ord] AS target, q.h[p.ord] AS h,
				q.value[p.ord] AS value,
				posterior.affine(p.prediction, q.scale[p.ord], q.anchor[p.ord]) AS d
			FROM (SELECT cut, posterior.context((value - %2$s) / %3$s,
				%4$s ORDER BY target) AS context
					FROM features, unnest($3) cut
						WHERE role = 'past' AND target <= cut AND value IS NOT NULL GROUP BY cut) c
				JOIN (SELECT cut, role, array_agg(ROW(%4$s) ORDER BY target, h) AS rows,
					array_agg(target ORDER BY target, h) AS target,
					array_agg(h ORDER BY target, h) AS h,
						array_agg(value ORDER BY target, h) AS value,
							array_agg(%2$s ORDER BY target, h) AS anchor,
							array_agg(%3$s::float8 ORDER BY target, h) AS scale
					FROM asked GROUP BY cut, role) q USING (cut),
				LATERAL posterior.predict_rows(c.context, q.rows) p$q$,
			spec, shape.anchor, shape.scale, columns);
	END LOOP;
	RETURN QUERY EXECUTE format($q$
		WITH s AS MATERIALIZED (SELECT i::integer AS i, nullif(v, 'NaN') AS v,
				nullif(value, 'NaN') AS value
			FROM unnest($1, $4) WITH ORDINALITY u (v, value, i)),
		known AS MATERIALIZED (
			SELECT i, nullif($1[max(i) FILTER (WHERE v IS NOT NULL) OVER a], 'NaN') AS last,
				avg(v) OVER near AS mean1, avg(v) OVER before AS mean2,
				nullif(avg(abs(v)) OVER near, 0) AS size, lag(v, 1) OVER a AS lag1,
					lag(v, 2) OVER a AS lag2, lag(v, 3) OVER a AS lag3
			FROM s
			WINDOW a AS (ORDER BY i), near AS (ORDER BY i ROWS BETWEEN %1$s PRECEDING
				AND CURRENT ROW), before AS (ORDER BY i ROWS BETWEEN %2$s PRECEDING AND
				%3$s PRECEDING)),
		pairs AS (
			SELECT 'past' AS role, i AS target, h, value
				FROM s, LATERAL (SELECT 1 +
				floor((i * 0.6180339887498949 - floor(i * 0.6180339887498949)) * %4$s)::integer)
				g (h)
			WHERE i > %5$s AND value IS NOT NULL
			UNION ALL
			SELECT 'ahead', %6$s + h, h, NULL FROM generate_series(1, %4$s) h
			UNION ALL
			SELECT 'path', o + h, h, value FROM generate_series(1, %4$s) h,
				generate_series(%7$s, %6$s - %4$s, greatest((%6$s - %4$s - %7$s) / 8, 1)) o
				JOIN s ON true WHERE %8$s AND s.i = o + h AND value IS NOT NULL),
		features AS MATERIALIZED (
			SELECT p.*, k.last, coalesce(k.mean1, k.last) AS mean1, k.mean2,
				coalesce(k.size, abs(nullif(k.last, 0)), 1) AS size, k.lag1, k.lag2, k.lag3,
				nullif($1[target - m], 'NaN') AS same,
					nullif($1[target - m - %9$s], 'NaN') AS same2,
					nullif($1[k.i - m], 'NaN') AS past, nullif($1[k.i - m - %9$s], 'NaN') AS past2,
				CASE WHEN %9$s > 1 THEN (SELECT avg(nullif($1[target - m - j * %9$s], 'NaN'))
					FROM generate_series(0, %10$s - 3) j) END AS usual,
				CASE WHEN %9$s > 1 THEN (SELECT avg(nullif($1[target - m - j * %9$s],
					'NaN') - nullif($1[k.i - m - j * %9$s], 'NaN'))
					FROM generate_series(0, %10$s - 1) j) END AS change %11$s
			FROM pairs p JOIN known k ON k.i = p.target - p.h,
				LATERAL (SELECT %9$s * ((p.h + %9$s - 1) / %9$s) AS m) m
			WHERE k.last IS NOT NULL),
		asked AS (
			SELECT f.*, cut FROM features f, unnest($3) WITH ORDINALITY c (cut, ord)
			WHERE role = 'ahead' AND cut = %6$s OR role = 'past' AND target > cut
				AND target <= $3[ord + 1] OR role = 'path' AND ord = cardinality($3) - 1),
		answers AS MATERIALIZED (%12$s),
		members AS MATERIALIZED (
			SELECT role, cut, target, h, value, d, spec FROM answers
			UNION ALL
			SELECT q.role[o], q.cut, q.target[o], q.h[o], q.value[o], d, -form
			FROM (SELECT cut, array_agg(role ORDER BY role, target, h) AS role,
				array_agg(target ORDER BY role, target, h) AS target,
				array_agg(h ORDER BY role, target, h) AS h,
					array_agg(value ORDER BY role, target, h) AS value,
						array_agg(target - h ORDER BY role, target, h) AS origin FROM asked
						GROUP BY cut) q,
				generate_series(0, 4) form,
				LATERAL unnest(posterior_internal.smooth($1, %9$s, q.cut, q.origin, q.h, form)) WITH
					ORDINALITY u (d, o) WHERE d IS NOT NULL),
		classes AS (
			SELECT least(spec, 1) AS class, role, target, h, value,
				posterior.pool(array_agg(d ORDER BY spec),
				array_fill(1::float8, ARRAY[count(*)::integer])) AS d
			FROM members WHERE role = 'past' GROUP BY least(spec, 1), role, target, h, value),
		scores AS (
			SELECT class, avg(posterior.crps(d, value) ORDER BY target, h) AS crps
				FROM classes GROUP BY class),
		shares AS (
			SELECT class, CASE class WHEN 1 THEN %14$s WHEN -1 THEN 4 ELSE 1 END
				* CASE WHEN s.crps IS NOT NULL THEN
				greatest(coalesce(min(s.crps) OVER () / nullif(s.crps, 0), 1), 1e-2) ^ %15$s
				ELSE 1 END AS share
			FROM (SELECT DISTINCT least(spec, 1) AS class FROM members) c
				LEFT JOIN scores s USING (class)),
		weights AS (
			SELECT class, CASE WHEN %16$s THEN share / sum(share) OVER every
				WHEN class = -1 THEN 0.4
				ELSE 0.6 * share / sum(share) FILTER (WHERE class <> -1) OVER every END
				/ CASE class WHEN 1 THEN %13$s ELSE 1 END AS w
				FROM shares WINDOW every AS (ORDER BY class ROWS BETWEEN UNBOUNDED PRECEDING AND
				UNBOUNDED FOLLOWING)),
		pooled AS MATERIALIZED (
			SELECT role, cut, target, h, value,
				posterior.pool(array_agg(d ORDER BY spec), array_agg(w ORDER BY spec)) AS d
			FROM members JOIN weights ON class = least(spec, 1)
				GROUP BY role, cut, target, h, value),
		normal AS MATERIALIZED (
			SELECT role, target - h AS origin, h,
				posterior.quantile(posterior.normal(0, 1),
				least(greatest(posterior.cdf(d, value), 1e-4), 1 - 1e-4))
				/ sqrt(1 + h::float8 / greatest(cut - %5$s, 1)) AS z FROM pooled
				WHERE role <> 'ahead'),
		spread AS (
			SELECT least(greatest(sqrt((sum(z * z) * share + 6) / (count(*) * share + 6)), 0.75),
				2) AS c
			FROM normal, (VALUES (1 / greatest(%4$s / 2.0, 1)::float8)) s (share)
				WHERE role = 'past' GROUP BY share),
		chain AS (
			SELECT least(greatest(sum(a.z * b.z) / nullif(sqrt(sum(a.z * a.z) * sum(b.z * b.z)), 0),
				0), 0.99) AS r
			FROM normal a JOIN normal b ON b.origin = a.origin AND b.h = a.h + 1 AND b.role = 'path'
				WHERE a.role = 'path')
		SELECT h, posterior_internal.widen(d, c), coalesce(r, 0)
		FROM (SELECT p.*, coalesce((SELECT c FROM spread), 1)
				* sqrt(1 + h::float8 / greatest(%6$s - %5$s, 1)) AS c
			FROM pooled p WHERE role = 'ahead') p, (SELECT (SELECT r FROM chain) AS r) r
		ORDER BY h$q$,
		width - 1, 2 * width - 1, width, horizon, first, n,
			cuts[greatest(cardinality(cuts) - 1, 1)],
			CASE WHEN paths AND cardinality(cuts) > 1 THEN 'true' ELSE 'false' END,
		season, least(8, greatest(3, 400 / greatest(season, 1))), lags, parts, spec,
		CASE WHEN foretold THEN 6 ELSE 4 END, CASE WHEN foretold THEN 4 ELSE 3 END, foretold::text)
	USING usual, x, cuts, y;
END $$;
COMMENT ON FUNCTION posterior_internal.forecast_steps(float8[], float8[], integer, integer, integer,
	boolean, boolean) IS
	'distributions of the next steps of a series, and how much of an error stays from step to step';

-- The parts that forecast and backtest share: what is wrong with a series, NULL where nothing is.
CREATE FUNCTION posterior_internal.series_trouble(series jsonb, y float8[]) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN count(v) FILTER (WHERE v <> 'NaN') = 0 THEN 'its target is NULL in all rows'
		WHEN count(v) FILTER (WHERE v <> 'NaN') < 12 THEN
			format('it has %s values, and 12 are needed', count(v) FILTER (WHERE v <> 'NaN')) END
	FROM unnest(y) v
$$;
COMMENT ON FUNCTION posterior_internal.series_trouble(jsonb,
	float8[]) IS 'why a series cannot be forecast';

-- The same of the steps ahead: the shortest part of the history has to have as many rows as the
-- model needs, each with a value so many steps before it as forecast_steps lays between the two.
CREATE FUNCTION posterior_internal.horizon_trouble(y float8[], horizon integer) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT format('%s steps ahead are too many for %s values', horizon, count(*))
	FROM (SELECT i, greatest(cardinality(y) - 512, 1) AS first, min(i) OVER () AS earliest
		FROM unnest(y) WITH ORDINALITY u (v, i) WHERE v <> 'NaN') s
	HAVING count(*) FILTER (WHERE i > first
			AND i <= (posterior_internal.forecast_cuts(first, cardinality(y)))[1]
			AND i - 1 - floor((i * 0.6180339887498949 - floor(i * 0.6180339887498949)) * horizon)
				>= earliest)
		< (SELECT min_rows FROM posterior.models WHERE name = coalesce(nullif(current_setting(
			'posterior.model', true), ''), 'tabular'))
$$;
COMMENT ON FUNCTION posterior_internal.horizon_trouble(float8[], integer) IS
	'why a series cannot be forecast so far ahead';

-- `before`: how many were left out before; the first few are named.
CREATE FUNCTION posterior_internal.refuse_series(series jsonb, trouble text,
	before integer) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF series IS NULL THEN
		RAISE EXCEPTION 'the series cannot be forecast: %', trouble
			USING ERRCODE = 'no_data_found',
				HINT = 'Name the right column as the target, take more history, a shorter step, or '
				'fewer steps ahead.';
	END IF;
	IF before < 5 THEN
		RAISE WARNING 'series % is left out: %', series, trouble USING ERRCODE = 'no_data_found';
	END IF;
END $$;
COMMENT ON FUNCTION posterior_internal.refuse_series(jsonb, text, integer) IS
	'an error, or a warning where there are other series';

-- At the end: what was answered, and what was not.
CREATE FUNCTION posterior_internal.check_series(relation regclass, answered integer,
	left_out integer) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF answered = 0 AND left_out = 0 THEN
		RAISE EXCEPTION 'relation % has no rows', relation USING ERRCODE = 'no_data_found',
			HINT = 'Row-level security may hide them.';
	ELSIF answered = 0 THEN
		RAISE EXCEPTION 'none of the % series of relation % can be forecast', left_out, relation
			USING ERRCODE = 'no_data_found',
				HINT = 'Columns of by tell one series from another, not the steps of a series; '
				'name the right column as the target, or take more history.';
	ELSIF left_out > 5 THEN
		RAISE WARNING 'further % series are left out', left_out - 5
			USING ERRCODE = 'no_data_found';
	END IF;
END $$;
COMMENT ON FUNCTION posterior_internal.check_series(regclass, integer, integer) IS
	'an error where no series could be forecast';

CREATE FUNCTION posterior.forecast(relation regclass, "time" text, target text, horizon integer,
	"by" text[] DEFAULT NULL, level float8 DEFAULT 0.9,
		features text[] DEFAULT NULL, known regclass DEFAULT NULL, holidays regclass DEFAULT NULL,
			every interval DEFAULT NULL, season integer DEFAULT NULL,
		history integer DEFAULT 4096, draws integer DEFAULT 0, seed bigint DEFAULT 0,
			model text DEFAULT NULL)
	RETURNS TABLE (series jsonb, step integer, at timestamptz, at_number bigint, mean float8,
		median float8, low float8, high float8, prediction posterior.distribution, drawn float8[])
	LANGUAGE plpgsql VOLATILE ROWS 100 COST 1000000 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	before text;
	s record;
	trouble text;
	answered integer := 0;
	left_out integer := 0;
	answers posterior.distribution[];
	persistence float8;
	paths float8[];
	z float8;
	stamp text;
BEGIN
	PERFORM posterior_internal.check_count(horizon, 'horizon', 1, 1000,
		'horizon => 14 asks for the next 14 steps.'),
		posterior_internal.check_level(level),
			posterior_internal.check_count(draws, 'draws', 0, 100000),
			posterior_internal.check_seed(seed),
			posterior_internal.check_count(history, 'history', 12, 1000000),
		posterior_internal.check_count(coalesce(forecast.season, 1), 'season', 1, 100000,
			'season is the number of steps of one cycle, as 24 for hours of a day.');
	before := posterior_internal.use_model(model);
	FOR s IN SELECT * FROM posterior_internal.series(relation, "time", target, "by", features,
		known, holidays, every, horizon, history) LOOP
		trouble := coalesce(posterior_internal.series_trouble(s.series, s.y),
			posterior_internal.horizon_trouble(s.y, horizon));
		IF trouble IS NOT NULL THEN
			PERFORM posterior_internal.refuse_series(s.series, trouble, left_out);
			left_out := left_out + 1;
			CONTINUE;
		END IF;
		answered := answered + 1;
		SELECT array_agg(f.prediction ORDER BY f.step), max(f.persistence) INTO answers, persistence
		FROM posterior_internal.forecast_steps(s.y, s.x, s.yearly,
			coalesce(forecast.season, s.season), horizon, s.foretold, draws > 0) f;
		IF draws > 0 THEN
			SELECT array_agg(e ORDER BY i) INTO paths
				FROM posterior.draw(posterior.normal(0, 1), draws * horizon,
				-- each of several series has random numbers of its own
				CASE WHEN s.series IS NULL THEN seed ELSE hashtextextended(s.series::text,
				seed) END) WITH ORDINALITY u (e, i);
		END IF;
		FOR h IN 1 .. horizon LOOP
			prediction := answers[h];
			-- a chain of normal scores, the same for all steps, so that rows of one draw belong
			-- together
			drawn := NULL;
			IF draws > 0 THEN
				drawn := array_fill(0::float8, ARRAY[draws]);
				FOR d IN 1 .. draws LOOP
					z := CASE WHEN h = 1 THEN paths[d]
						ELSE persistence * paths[d] + sqrt(1 - persistence * persistence) *
						paths[(h - 1) * draws + d] END;
					paths[d] := z;
					drawn[d] := posterior.quantile(prediction,
						posterior.cdf(posterior.normal(0, 1), z));
				END LOOP;
			END IF;
			series := s.series;
			step := h;
			stamp := posterior_internal.grid_time(s.kind, s.unit, s.length, s.exact, s.local,
				s.month_end, cardinality(s.y) + h);
			at := CASE WHEN s.kind <> 'integer' THEN stamp::timestamptz END;
			at_number := CASE WHEN s.kind = 'integer' THEN stamp::bigint END;
			mean := posterior.mean(prediction);
			median := posterior.median(prediction);
			low := posterior.quantile(prediction, (1 - level) / 2);
			high := posterior.quantile(prediction, (1 + level) / 2);
			RETURN NEXT;
		END LOOP;
	END LOOP;
	PERFORM posterior_internal.check_series(relation, answered, left_out);
	PERFORM posterior_internal.use_model(before);
END $$;
COMMENT ON FUNCTION posterior.forecast(regclass, text, text, integer, text[], float8, text[],
	regclass, regclass, interval, integer, integer, integer, bigint, text)
	IS 'distributions of the next steps of a series, or of each of several';

CREATE FUNCTION posterior.forecast_total(relation regclass, "time" text, target text,
	horizon integer, "by" text[] DEFAULT NULL, level float8 DEFAULT 0.9,
		features text[] DEFAULT NULL, known regclass DEFAULT NULL, holidays regclass DEFAULT NULL,
			every interval DEFAULT NULL, season integer DEFAULT NULL,
		history integer DEFAULT 4096, draws integer DEFAULT 1000, seed bigint DEFAULT 0,
			model text DEFAULT NULL)
	RETURNS TABLE (series jsonb, mean float8, median float8, low float8, high float8,
		drawn float8[])
	LANGUAGE plpgsql VOLATILE ROWS 10 COST 1000000 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	PERFORM posterior_internal.check_count(draws, 'draws', 10, 100000,
		'A total is drawn: a few hundred draws tell its band.');
	RETURN QUERY
		SELECT t.series, t.mean, q[1], q[2], q[3], t.drawn
		FROM (SELECT d.series, array_agg(total ORDER BY draw) AS drawn, min(d.mean) AS mean,
				percentile_cont(ARRAY[0.5, (1 - level) / 2, (1 + level) / 2]) WITHIN
					GROUP (ORDER BY total) AS q
			FROM (SELECT f.series, draw, sum(f.drawn[draw]) AS total, sum(f.mean) AS mean
				FROM posterior.forecast(relation, "time", target, horizon, "by", level, features,
					known, holidays, every, season, history, draws, seed, model) f,
					generate_series(1, draws) draw GROUP BY f.series, draw) d
			GROUP BY d.series) t ORDER BY t.series;
END $$;
COMMENT ON FUNCTION posterior.forecast_total(regclass, text, text, integer, text[], float8, text[],
	regclass, regclass, interval, integer, integer, integer, bigint, text)
	IS 'the sum of the next steps of a series, with a band of its own, from joint draws';

-- Forecasts of a series from earlier origins, each from what was there then and nothing later:
-- slices end at the origin.
CREATE FUNCTION posterior_internal.backtest_steps(y float8[], x float8[], yearly integer,
	season integer, horizon integer, foretold boolean, origins integer,
		OUT origin integer, OUT step integer, OUT value float8,
			OUT prediction posterior.distribution, OUT baseline posterior.distribution)
	RETURNS SETOF record
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	n integer := cardinality(y);
	first integer := greatest(n / 2, 24);
	spread float8;
	usual float8;
	known float8[];
BEGIN
	PERFORM posterior_internal.check_size(y);
	FOR origin IN SELECT DISTINCT round(first + (n - horizon - first) * (i - 1)::float8 /
		greatest(origins - 1, 1))::integer AS o FROM generate_series(1, origins) i ORDER BY o LOOP
		known := y[1:origin];
		CONTINUE WHEN known[origin] IS NULL;
		-- the last season again, as wide as seasons differed
		SELECT sqrt(sum((v - w) * (v - w)) / count(v - w)) INTO spread
		FROM (SELECT v, lag(v, season) OVER (ORDER BY i) AS w
			FROM (SELECT i, nullif(v, 'NaN') AS v FROM unnest(known) WITH ORDINALITY u (v, i)) s) d;
		SELECT v INTO usual FROM unnest(known) WITH ORDINALITY u (v, i)
			WHERE v <> 'NaN' ORDER BY i DESC LIMIT 1;
		RETURN QUERY
			SELECT origin, f.step, y[origin + f.step], f.prediction,
				posterior.normal(coalesce(nullif(known[origin + f.step - season
					* ((f.step + season - 1) / season)], 'NaN'), usual),
					greatest(spread * sqrt(((f.step + season - 1) / season)::float8),
						1e-9 * greatest(abs(usual), 1e-100)))
			FROM posterior_internal.forecast_steps(known, x[1:origin + horizon], yearly, season,
				horizon, foretold) f
			WHERE y[origin + f.step] <> 'NaN';
	END LOOP;
END $$;
COMMENT ON FUNCTION posterior_internal.backtest_steps(float8[], float8[], integer, integer, integer,
	boolean, integer) IS 'forecasts from earlier origins, beside the last season again';

CREATE FUNCTION posterior.backtest(relation regclass, "time" text, target text, horizon integer,
	"by" text[] DEFAULT NULL, level float8 DEFAULT 0.9,
		features text[] DEFAULT NULL, holidays regclass DEFAULT NULL, every interval DEFAULT NULL,
			season integer DEFAULT NULL,
		history integer DEFAULT 4096, origins integer DEFAULT 10, each_origin boolean DEFAULT false,
			model text DEFAULT NULL)
	RETURNS TABLE (series jsonb, origin timestamptz, origin_number bigint, n bigint,
		log_density float8, crps float8, rmse float8, mae float8, coverage float8,
		width float8, pit float8[], baseline_crps float8, baseline_rmse float8, baseline_mae float8,
			baseline_coverage float8, skill float8)
	LANGUAGE plpgsql VOLATILE ROWS 10 COST 1000000 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	before text;
	s record;
	trouble text;
	answered integer := 0;
	left_out integer := 0;
	cycle integer;
BEGIN
	PERFORM posterior_internal.check_count(horizon, 'horizon', 1, 1000,
		'horizon => 14 asks for the next 14 steps.'),
		posterior_internal.check_level(level), posterior_internal.check_count(origins, 'origins', 1,
			1000), posterior_internal.check_count(history, 'history', 12, 1000000),
		posterior_internal.check_count(coalesce(backtest.season, 1), 'season', 1, 100000,
			'season is the number of steps of one cycle, as 24 for hours of a day.');
	before := posterior_internal.use_model(model);
	FOR s IN SELECT * FROM posterior_internal.series(relation, "time", target, "by", features, NULL,
		holidays, every, 0, history) LOOP
		cycle := coalesce(backtest.season, s.season);
		trouble := coalesce(posterior_internal.series_trouble(s.series, s.y),
			CASE WHEN cardinality(s.y) < 24 + horizon THEN
				format('a backtest of %s steps needs a history of %s, and it has %s', horizon,
				24 + horizon, cardinality(s.y)) END,
			-- from the earliest origin of backtest_steps
			posterior_internal.horizon_trouble(s.y[1:least(greatest(cardinality(s.y) / 2, 24),
				cardinality(s.y) - horizon)], horizon));
		IF trouble IS NOT NULL THEN
			PERFORM posterior_internal.refuse_series(s.series, trouble, left_out);
			left_out := left_out + 1;
			CONTINUE;
		END IF;
		answered := answered + 1;
		RETURN QUERY
			SELECT s.series, CASE WHEN s.kind <> 'integer' THEN stamp::timestamptz END,
				CASE WHEN s.kind = 'integer' THEN stamp::bigint END, c.n, c.log_density, c.crps,
				c.rmse, c.mae, c.coverage, c.width,
				c.pit, c.baseline_crps, c.baseline_rmse, c.baseline_mae, c.baseline_coverage,
					-- what the last season tells exactly leaves no skill to be had
					CASE WHEN c.baseline_rmse > 0 THEN 1 - c.crps / c.baseline_crps END
			FROM (SELECT o, count(*) AS n, avg(posterior.log_pdf(prediction, value)) AS log_density,
				avg(posterior.crps(prediction, value)) AS crps,
					sqrt(sum((posterior.mean(prediction) - value) ^ 2) / count(*)) AS rmse,
						avg(abs(posterior.median(prediction) - value)) AS mae,
					avg((value <@ posterior.bounds(prediction, level))::integer::float8) AS
						coverage,
					avg(upper(posterior.bounds(prediction,
						level)) - lower(posterior.bounds(prediction, level))) AS width,
					posterior_internal.histogram(array_agg(posterior.cdf(prediction, value))) AS
						pit,
					avg(posterior.crps(baseline, value)) AS baseline_crps,
						sqrt(sum((posterior.mean(baseline) - value) ^ 2) / count(*)) AS
							baseline_rmse,
					avg(abs(posterior.mean(baseline) - value)) AS baseline_mae,
						avg((value <@ posterior.bounds(baseline, level))::integer::float8) AS
						baseline_coverage
				FROM (SELECT CASE WHEN each_origin THEN b.origin END AS o, b.*
					FROM posterior_internal.backtest_steps(s.y, s.x, s.yearly, cycle, horizon,
					s.foretold, origins) b) b
				GROUP BY o) c,
				LATERAL (SELECT CASE WHEN o IS NOT NULL THEN posterior_internal.grid_time(s.kind,
					s.unit, s.length, s.exact, s.local, s.month_end, o) END) t (stamp)
			ORDER BY o;
	END LOOP;
	PERFORM posterior_internal.check_series(relation, answered, left_out);
	PERFORM posterior_internal.use_model(before);
END $$;
COMMENT ON FUNCTION posterior.backtest(regclass, text, text, integer, text[], float8, text[],
	regclass, interval, integer, integer, integer, boolean, text)
	IS 'scores of forecasts from earlier origins, beside those of the last season again';
