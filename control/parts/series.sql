-- ---- series on a grid of time steps -------------------------------------------------------------

-- How a time column is read. Times become numbers: seconds since 1970 of the instant (exact) and of
-- the local clock.
CREATE FUNCTION posterior_internal.time_kind(relation regclass, "time" text) RETURNS text
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	given regtype := posterior_internal.check_column(relation, "time", 'time');
	type regtype := posterior_internal.base_type(given);
BEGIN
	IF type IN ('smallint'::regtype, 'integer', 'bigint') THEN
		RETURN 'integer';
	ELSIF type IN ('date'::regtype, 'timestamp', 'timestamptz') THEN
		RETURN type::text;
	END IF;
	RAISE EXCEPTION 'column "%" is no time', "time"
		USING ERRCODE = 'datatype_mismatch',
			DETAIL = format('Its type is %s; a time is a date, a timestamp or an integer.', given),
			HINT = coalesce('Make a view that casts it, as in SELECT ' || format(CASE
				WHEN posterior_internal.is_number(type) THEN 'to_timestamp(%I) AS %1$I'
				WHEN (SELECT t.typcategory = 'S' FROM pg_type t WHERE t.oid = type)
					THEN '%I::timestamptz' END, "time") || ', and name the view instead.',
				'Name a column of times, or of integers that count the steps.');
END $$;
COMMENT ON FUNCTION posterior_internal.time_kind(regclass,
	text) IS 'type of a time column, or an error';

CREATE FUNCTION posterior_internal.refuse_times(detail text) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION 'a series has two rows of one time'
		USING ERRCODE = 'cardinality_violation', DETAIL = detail,
			HINT =
			'Where the relation holds several series, name the columns that tell them apart, as '
			'in by => ''{store}''; else aggregate the rows of a time in a view.';
END $$;
COMMENT ON FUNCTION posterior_internal.refuse_times(text) IS
	'the error of a series with two rows of one time';

-- The grid of a series: every time's index, from 1, and the length of a step. exact: seconds of the
-- instants; local: seconds of the local clock. Months have no length in seconds: they are counted.
CREATE FUNCTION posterior_internal.grid(kind text, exact float8[], local float8[], step interval,
	OUT unit text, OUT length float8, OUT index integer[])
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	usual float8;
	months integer;
	off float8;
	days boolean;
BEGIN
	IF step IS NULL THEN
		SELECT mode() WITHIN GROUP (ORDER BY d) INTO usual
			FROM (SELECT e - lag(e) OVER (ORDER BY i) AS d
			FROM unnest(exact) WITH ORDINALITY u (e, i)) u WHERE d > 0;
		IF usual IS NULL THEN
			usual := 1;
		END IF;
		months := CASE WHEN kind = 'integer' THEN NULL
			WHEN usual / 86400 BETWEEN 27.9 AND 31.1 THEN 1
			WHEN usual / 86400 BETWEEN 89 AND 92.1 THEN 3
			WHEN usual / 86400 BETWEEN 180.9 AND 184.1 THEN 6
				WHEN usual / 86400 BETWEEN 364.9 AND 366.1 THEN 12 END;
		-- four weeks are no month where every time keeps the weekday
		IF months = 1 AND usual = 28 * 86400 THEN
			months := NULL;
		END IF;
		-- whole days of the local clock, unless only the instants are
		days := kind <> 'integer' AND months IS NULL AND usual::bigint % 86400 = 0
			AND (SELECT bool_and((l - local[1])::bigint % 86400 = 0) FROM unnest(local) l);
	ELSE
		IF kind = 'integer' THEN
			RAISE EXCEPTION 'every is an interval, and the time is an integer'
				USING ERRCODE = 'datatype_mismatch',
				HINT = 'Leave it out: a step is the usual difference of two times.';
		END IF;
		months := nullif(extract(year FROM step) * 12 + extract(month FROM step), 0);
		usual := extract(epoch FROM step);
		days := extract(day FROM step) > 0 AND usual::bigint % 86400 = 0;
		IF usual <= 0 OR (months IS NOT NULL
			AND (step - make_interval(months => months)) <> interval '0') THEN
			RAISE EXCEPTION 'every must be a positive number of months, days or seconds'
				USING ERRCODE = 'invalid_parameter_value', DETAIL = format('It is %s.', step),
					HINT = 'Leave it out: a step is the usual difference of two times.';
		END IF;
	END IF;
	IF months IS NOT NULL THEN
		unit := 'month';
		length := months;
		SELECT array_agg(1 + (m - min) / months ORDER BY i), max((m - min) % months) INTO index, off
		FROM (SELECT i, m, min(m) OVER () AS min
			FROM (SELECT i, (extract(year FROM t) * 12 + extract(month FROM t))::integer AS m
			FROM (SELECT i, to_timestamp(l) AT TIME ZONE 'UTC' AS t
				FROM unnest(local) WITH ORDINALITY u (l, i)) t) n) o;
	ELSIF (SELECT (max(e) - min(e)) / usual > 1e9 FROM unnest(exact) e) THEN
		RAISE EXCEPTION 'a series has more gaps than values'
			USING ERRCODE = 'invalid_parameter_value',
			DETAIL = format('There are %s rows in %s steps.', cardinality(exact),
				(SELECT ((max(e) - min(e)) / usual)::numeric(40) FROM unnest(exact) e)),
			HINT = 'Give a longer step and aggregate in a view, or leave out what is long ago.';
	ELSE
		unit := CASE WHEN days THEN 'day' WHEN kind = 'integer' THEN 'integer' ELSE 'second' END;
		length := usual;
		SELECT array_agg(1 + round((e - min) / usual)::integer ORDER BY i),
			max(abs((e - min) / usual - round((e - min) / usual))) INTO index, off
		FROM (SELECT i, e, min(e) OVER () AS min
			FROM unnest(CASE WHEN days THEN local ELSE exact END) WITH ORDINALITY u (e, i)) t;
	END IF;
	IF off > 0.05 THEN
		RAISE EXCEPTION 'the times are not on a grid of equal steps'
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = CASE unit WHEN 'month' THEN format('The step is %s months.', length)
					WHEN 'integer' THEN format('The step is %s.', length)
					ELSE format('The step is %s.',
					justify_hours(make_interval(secs => length))) END,
				HINT =
					'Bring them onto one in a view, as in SELECT date_bin(''1 hour'', time, '
					'''2000-01-01'') AS time, avg(y) AS y … GROUP BY 1, or give every, the length '
					'of a step.';
	END IF;
END $$;
COMMENT ON FUNCTION posterior_internal.grid(text, float8[], float8[],
	interval) IS 'step and indexes of times';

-- The time of index i, counted from the first (1), as text that every time type reads. last: local
-- seconds of the first time.
CREATE FUNCTION posterior_internal.grid_time(kind text, unit text, length float8, exact float8,
	local float8, month_end boolean, i integer) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE SET datestyle = 'ISO, MDY' SET search_path = pg_catalog,
		pg_temp AS $$
	SELECT CASE
		WHEN kind = 'integer' THEN (exact + (i - 1) * length)::bigint::text
		WHEN unit = 'second' AND kind = 'timestamp with time zone' THEN
			to_timestamp(exact + (i - 1) * length)::text
		WHEN unit = 'second' THEN (to_timestamp(exact + (i - 1) * length) AT TIME ZONE 'UTC')::text
		WHEN unit = 'day' THEN (to_timestamp(local + (i - 1) * length) AT TIME ZONE 'UTC')::text
		WHEN month_end THEN (date_trunc('month',
			t) + make_interval(months => (i - 1) * length::integer + 1) - interval '1 day')::text
		ELSE (t + make_interval(months => (i - 1) * length::integer))::text END
	FROM (SELECT to_timestamp(local) AT TIME ZONE 'UTC' AS t) f
$$;
COMMENT ON FUNCTION posterior_internal.grid_time(text, text, float8, float8, float8, boolean,
	integer) IS 'time of a step';

-- Steps in one cycle, where the length of a step says it.
CREATE FUNCTION posterior_internal.season(unit text, length float8) RETURNS integer
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN unit = 'integer' THEN 1
		WHEN unit = 'month' THEN greatest(12 / length::integer, 1)
		WHEN length < 86400 THEN CASE WHEN length >= 60 THEN round(86400 / length)::integer
			ELSE round(3600 / length)::integer END
		WHEN length = 86400 THEN 7
		WHEN length BETWEEN 6 * 86400 AND 8 * 86400 THEN 52
		WHEN length < 7 * 86400 THEN 1
		ELSE greatest(round(365.25 * 86400 / length)::integer, 1) END
$$;
COMMENT ON FUNCTION posterior_internal.season(text, float8) IS 'steps of a usual cycle';

-- Calendar features of a series' steps, [steps][columns], those of the year first; `yearly` of
-- them. holiday: the last column is of the holidays.
CREATE FUNCTION posterior_internal.calendar_matrix(kind text, unit text, length float8,
	exact float8, local float8, month_end boolean, steps integer, holidays date[], OUT x float8[],
	OUT yearly integer, OUT holiday boolean)
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	yearly := 0;
	holiday := holidays IS NOT NULL AND unit IN ('day', 'second') AND length <= 86400;
	IF unit = 'integer' OR (unit = 'month' AND length >= 12) THEN
		RETURN;
	END IF;
	yearly := 2;
	SELECT array_agg(ARRAY[c.yearday_sin, c.yearday_cos]
		|| CASE WHEN unit <> 'month' AND length < 86400 THEN ARRAY[c.hour_sin, c.hour_cos]
			ELSE '{}' END
		|| CASE WHEN unit <> 'month' AND length <= 86400 THEN ARRAY[sind(w), cosd(w)] ELSE '{}' END
		|| CASE WHEN holiday THEN ARRAY[(t::date = ANY (holidays))::integer::float8]
			ELSE '{}' END ORDER BY i)
	INTO x
	FROM (SELECT i, CASE WHEN unit = 'month' THEN posterior_internal.grid_time(kind, unit, length,
		exact, local, month_end, i)::timestamp
			WHEN unit = 'second' AND kind = 'timestamp with time zone' THEN
				to_timestamp(exact + (i - 1) * length)::timestamp
			ELSE to_timestamp(local + (i - 1) * length) AT TIME ZONE 'UTC' END AS t
				FROM generate_series(1, steps) i) s,
		LATERAL posterior.calendar(t) c,
			LATERAL (SELECT 360 * (extract(isodow FROM t)::float8 - 1) / 7 AS w) d;
END $$;
COMMENT ON FUNCTION posterior_internal.calendar_matrix(text, text, float8, float8, float8, boolean,
	integer, date[]) IS 'calendar features of the steps of a series';

-- Every series of a relation on its grid: values with NaN in the gaps, features and calendar of
-- each step and of `ahead` steps after it. One row is in memory at a time, of the newest `history`
-- rows of a series.
CREATE FUNCTION posterior_internal.series(relation regclass, "time" text, target text, "by" text[],
	features text[], known regclass, holidays regclass,
		step interval, ahead integer, history integer,
		OUT series jsonb, OUT y float8[], OUT x float8[], OUT yearly integer,
			OUT foretold boolean, OUT season integer,
			OUT kind text, OUT unit text, OUT length float8,
		OUT exact float8, OUT local float8, OUT month_end boolean)
	RETURNS SETOF record
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	key text;
	named text;
	partition text;
	grouping text;
	source text;
	r record;
	g record;
	free date[];
	n integer;
	names text := '';
	feature text;
	cal float8[];
	xs float8[];
	future_index integer[];
	future_features float8[];
BEGIN
	kind := posterior_internal.time_kind(relation, "time");
	PERFORM posterior_internal.check_number(relation, target, 'target');
	IF target = "time" THEN
		RAISE EXCEPTION 'column "%" is the time and cannot be the target', target
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'The target is the column of the values that the series takes.';
	END IF;
	PERFORM posterior_internal.group_key(relation, "by", ARRAY["time", target]);
	-- a group's columns have names of their own, which none beside them has
	SELECT coalesce(string_agg(format(', %I AS "by %s"', b, i), '' ORDER BY i), ''),
		coalesce(string_agg(format(', %I', b), '' ORDER BY i), ''),
		coalesce(string_agg(format(', "by %s"', i), '' ORDER BY i), ''),
		coalesce('jsonb_build_object(' || string_agg(format('%L, "by %s"', b, i), ', '
			ORDER BY i) || ')', 'NULL::jsonb')
	INTO named, partition, grouping, key FROM unnest("by") WITH ORDINALITY u (b, i);
	FOREACH feature IN ARRAY coalesce(features, '{}') LOOP
		IF feature IN (target, "time") OR feature = ANY (coalesce("by", '{}')) THEN
			RAISE EXCEPTION 'column "%" cannot be a feature: it has another role here', feature
				USING ERRCODE = 'invalid_parameter_value',
					HINT =
					'Features are further columns whose values are known for the steps ahead.';
		END IF;
		IF posterior_internal.base_type(posterior_internal.check_column(relation, feature,
			'feature')) = 'boolean'::regtype THEN
			names := names || format(', coalesce(%I::integer::float8, ''NaN'')', feature);
		ELSE
			PERFORM posterior_internal.check_number(relation, feature, 'feature');
			names := names || format(', coalesce(%I::float8, ''NaN'')', feature);
		END IF;
		IF known IS NOT NULL THEN
			PERFORM posterior_internal.check_column(known, feature, 'feature');
		END IF;
	END LOOP;
	IF known IS NOT NULL THEN
		PERFORM posterior_internal.check_column(known, "time", 'time'),
			posterior_internal.group_key(known, "by");
		IF names = '' THEN
			RAISE EXCEPTION 'relation % is to give features, and none is named', known
				USING ERRCODE = 'invalid_parameter_value',
					HINT = 'Name them, as in features => ''{temperature}''.';
		END IF;
	END IF;
	IF holidays IS NOT NULL THEN
		SELECT format('SELECT array_agg(%I) FROM %s', attname, holidays) INTO source
			FROM pg_attribute
		WHERE attrelid = holidays AND attnum > 0 AND NOT attisdropped
			AND posterior_internal.base_type(atttypid) = 'date'::regtype ORDER BY attnum LIMIT 1;
		IF source IS NULL THEN
			RAISE EXCEPTION 'relation % has no column of dates', holidays
				USING ERRCODE = 'undefined_column',
				HINT = 'A table of holidays has a column of type date.';
		END IF;
		EXECUTE source INTO free;
	END IF;
	source := CASE kind WHEN 'integer' THEN format('%1$I::float8 AS exact, %1$I::float8 AS local',
		"time")
		WHEN 'timestamp with time zone' THEN
			format('extract(epoch FROM %1$I)::float8 AS exact, extract(epoch FROM '
				'%1$I::timestamp)::float8 AS local',
			"time")
		ELSE format('extract(epoch FROM %1$I::timestamp)::float8 AS exact, extract(epoch FROM '
			'%1$I::timestamp)::float8 AS local',
			"time") END;
	FOR r IN EXECUTE format($q$
		SELECT %1$s AS key, array_agg(exact ORDER BY exact) AS exact,
			array_agg(local ORDER BY exact) AS local,
			array_agg(coalesce(value, 'NaN') ORDER BY exact) AS value,
			array_agg(features ORDER BY exact) AS features, count(*) AS rows,
				count(DISTINCT exact) AS times, count(value) AS present,
				count(*) - count(exact) AS timeless,
			bool_or(value IN ('Infinity', '-Infinity', 'NaN')
				OR exact IN ('Infinity', '-Infinity')) AS infinite,
			max(abs(exact)) AS furthest
		FROM (SELECT %2$s, %3$I::float8 AS value, ARRAY[%4$s]::float8[] AS features %5$s,
			row_number() OVER (PARTITION BY NULL %9$s ORDER BY %6$I DESC) AS newest FROM %7$s) t
		WHERE newest <= %8$s GROUP BY NULL::integer %10$s ORDER BY NULL::integer %10$s$q$, key,
			source, target, coalesce(nullif(substr(names, 3), ''), '0'), named, "time", relation,
			history, partition, grouping)
	LOOP
		series := r.key;
		IF r.timeless > 0 THEN
			RAISE EXCEPTION 'column "%" is NULL in % of the rows', "time", r.timeless
				USING ERRCODE = 'null_value_not_allowed',
					HINT = 'Leave these rows out in a view, WHERE the time IS NOT NULL.';
		ELSIF r.infinite THEN
			RAISE EXCEPTION 'a target or a time is NaN or infinite'
				USING ERRCODE = 'numeric_value_out_of_range',
				HINT = 'Use NULL for a missing value.';
		ELSIF kind = 'integer' AND r.furthest >= 2 ^ 53 THEN
			RAISE EXCEPTION 'a time is too large to be told from the next one'
				USING ERRCODE = 'numeric_value_out_of_range',
				DETAIL = 'Integer times lie between -2^53 and 2^53.',
				HINT = format('Count from the first one in a view, as in SELECT %1$I - (SELECT '
					'min(%1$I) FROM %2$s) AS %1$I, and name the view instead.', "time", relation);
		ELSIF r.times < r.rows THEN
			PERFORM posterior_internal.refuse_times(concat_ws(' ', 'Column', quote_ident("time"),
				'has', r.times, 'values in', r.rows, 'rows' || (' of ' || r.key::text)) || '.');
		END IF;
		SELECT * INTO g FROM posterior_internal.grid(kind, r.exact, r.local, step);
		unit := g.unit;
		length := g.length;
		n := (SELECT max(i) FROM unnest(g.index, r.value) u (i, v) WHERE v <> 'NaN');
		IF n IS NULL THEN
			y := '{}';
			RETURN NEXT;
			CONTINUE;
		ELSIF (SELECT count(DISTINCT i) FROM unnest(g.index) i) < r.rows THEN
			RAISE EXCEPTION 'a series has two rows in one step'
				USING ERRCODE = 'cardinality_violation',
				DETAIL = format('The step is %s.', coalesce(step::text, length::text)),
				HINT = 'Give a shorter step, or aggregate the rows of a step in a view.';
		ELSIF n > 20 * r.rows + 1000 THEN
			RAISE EXCEPTION 'a series has more gaps than values'
				USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('There are %s rows in %s steps.', r.rows, n),
				HINT = 'Give a longer step and aggregate in a view, or leave out what is long ago.';
		END IF;
		exact := r.exact[1];
		local := r.local[1];
		month_end := unit = 'month' AND (SELECT bool_and(extract(day
			FROM to_timestamp(l + 86400) AT TIME ZONE 'UTC') = 1) FROM unnest(r.local) l);
		IF unit = 'month' AND NOT month_end THEN
			-- the day of the month, where short months shorten it
			SELECT moved INTO local FROM (SELECT extract(epoch
				FROM (to_timestamp(r.local[1]) AT TIME ZONE 'UTC')
				+ make_interval(days => max(extract(day
					FROM to_timestamp(l) AT TIME ZONE 'UTC'))::integer - extract(day
					FROM to_timestamp(r.local[1]) AT TIME ZONE 'UTC')::integer))::float8 AS moved
				FROM unnest(r.local) l) m
			WHERE date_trunc('month', to_timestamp(moved) AT TIME ZONE 'UTC') = date_trunc('month',
				to_timestamp(r.local[1]) AT TIME ZONE 'UTC');
			local := coalesce(local, r.local[1]);
		END IF;
		season := posterior_internal.season(unit, length);
		y := array_fill('NaN'::float8, ARRAY[n]);
		IF r.rows = n AND g.index[r.rows] = n THEN
			y := r.value;
		ELSE
			SELECT array_agg(coalesce(r.value[p], 'NaN') ORDER BY i) INTO y
			FROM generate_series(1, n) i LEFT
				JOIN (SELECT index, p FROM unnest(g.index) WITH
				ORDINALITY u (index, p)) u ON u.index = i;
		END IF;
		SELECT c.x, c.yearly, c.holiday OR names <> '' INTO cal, yearly, foretold
			FROM posterior_internal.calendar_matrix(kind, unit, length, exact, local, month_end,
			n + ahead, free) c;
		x := cal;
		IF names <> '' THEN
			future_index := '{}';
			IF known IS NOT NULL THEN
				EXECUTE
					format('SELECT array_agg(i ORDER BY i) AS index,
						array_agg(f ORDER BY i) AS features
						FROM (SELECT DISTINCT ON (i) *
							FROM (SELECT (SELECT min(s.i)
								FROM generate_series($1 + 1, $1 + $2) s (i)
						WHERE posterior_internal.grid_time($3, $4, $5, $6, $7, $8,
							s.i)::%1$s = t.%2$I) AS i, ARRAY[%3$s]::float8[] AS f FROM %4$s t
							WHERE ($9 IS NULL OR %5$s = $9)) k WHERE i IS NOT NULL ORDER BY i) d',
					CASE kind WHEN 'integer' THEN 'bigint' ELSE kind END, "time", substr(names, 3),
						known, posterior_internal.group_key(known, "by"))
				INTO future_index, future_features USING n, ahead, kind, unit, length, exact, local,
					month_end, r.key;
				IF ahead > 0 AND coalesce(cardinality(future_index), 0) < ahead THEN
					RAISE EXCEPTION 'relation % does not have all steps ahead', known
						USING ERRCODE = 'no_data_found',
							DETAIL = concat('It has ', coalesce(cardinality(future_index), 0),
							' of ', ahead, ' steps', ' of ' || r.key::text, ', from ',
							posterior_internal.grid_time(kind, unit, length, exact, local,
								month_end, n + 1), ' on.'),
							HINT = 'Ask for a shorter horizon, or add the rows.';
				END IF;
			ELSIF (SELECT count(*) FROM unnest(g.index) i
				WHERE i > n AND i <= n + ahead) < ahead THEN
				RAISE EXCEPTION 'features are not known for the steps ahead'
					USING ERRCODE = 'no_data_found',
						DETAIL = concat('There are ', (SELECT count(*) FROM unnest(g.index) i
						WHERE i > n AND i <= n + ahead), ' of ', ahead,
						' rows without a target after the last that has one', ' of ' || r.key::text,
						'.'),
						HINT =
							'Name the relation that has them, as in known => ''weather_forecast'', '
							'add them as rows whose target is NULL, or leave the features out.';
			END IF;
			SELECT array_agg(row_x ORDER BY i) INTO xs FROM (
				SELECT i, CASE WHEN cal IS NULL THEN '{}'
					ELSE (SELECT array_agg(cal[i][c] ORDER BY c)
					FROM generate_series(1, array_length(cal, 2)) c) END
					|| coalesce((SELECT array_agg(r.features[p.p][c] ORDER BY c)
						FROM generate_series(1, cardinality(features)) c WHERE p.p IS NOT NULL),
						(SELECT array_agg(future_features[f.p][c] ORDER BY c)
							FROM generate_series(1, cardinality(features)) c WHERE f.p IS NOT NULL),
						array_fill('NaN'::float8, ARRAY[cardinality(features)])) AS row_x
				FROM generate_series(1, n + ahead) i
					LEFT JOIN (SELECT index, p
						FROM unnest(g.index) WITH ORDINALITY u (index, p)) p ON p.index = i
					LEFT JOIN (SELECT index, p
						FROM unnest(future_index) WITH ORDINALITY u (index, p)) f ON f.index = i) m;
			x := xs;
		END IF;
		RETURN NEXT;
	END LOOP;
END $$;
COMMENT ON FUNCTION posterior_internal.series(regclass, text, text, text[], text[], regclass,
	regclass, interval, integer, integer)
	IS 'the series of a relation on their grids of time steps';
