-- ---- calendar -----------------------------------------------------------------------------------

CREATE FUNCTION posterior_internal.finite_time(ts timestamp) RETURNS timestamp
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF NOT isfinite(ts) THEN
		RAISE EXCEPTION 'the calendar has no place for the time %', ts
			USING ERRCODE = 'datetime_field_overflow',
				HINT = 'Give NULL where a time is not known, or leave rows out with isfinite().';
	END IF;
	RETURN ts;
END $$;
COMMENT ON FUNCTION posterior_internal.finite_time(timestamp) IS
	'a time, or an error where it is infinite';

-- In PL/pgSQL, which plans an expression once for a session: a function in SQL would be planned at
-- every call.
CREATE FUNCTION posterior.calendar(ts timestamp, OUT hour_sin float8, OUT hour_cos float8,
	OUT weekday_sin float8, OUT weekday_cos float8,
		OUT monthday_sin float8, OUT monthday_cos float8, OUT yearday_sin float8,
			OUT yearday_cos float8)
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 5 SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	day constant float8 := extract(epoch FROM posterior_internal.finite_time(ts)
		- date_trunc('day', ts))::float8 / 86400;
	month_days constant float8 := extract(day
		FROM date_trunc('month', ts) + interval '1 month' - interval '1 day')::float8;
	h constant float8 := 360 * day;
	w constant float8 := 360 * (extract(isodow FROM ts)::float8 - 1 + day) / 7;
	m constant float8 := 360 * (extract(day FROM ts)::float8 - 1 + day) / month_days;
	y constant float8 := 360 * (extract(doy FROM ts)::float8 - 1 + day) / 365.25;
BEGIN
	hour_sin := sind(h);
	hour_cos := cosd(h);
	weekday_sin := sind(w);
	weekday_cos := cosd(w);
	monthday_sin := sind(m);
	monthday_cos := cosd(m);
	yearday_sin := sind(y);
	yearday_cos := cosd(y);
END $$;
COMMENT ON FUNCTION posterior.calendar(timestamp) IS
	'hour, weekday, day of month and day of year as sine and cosine, for features';
CREATE FUNCTION posterior.calendar(ts timestamptz, OUT hour_sin float8, OUT hour_cos float8,
	OUT weekday_sin float8, OUT weekday_cos float8,
		OUT monthday_sin float8, OUT monthday_cos float8, OUT yearday_sin float8,
			OUT yearday_cos float8)
	LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE COST 5 SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	SELECT * INTO hour_sin, hour_cos, weekday_sin, weekday_cos, monthday_sin, monthday_cos,
			yearday_sin, yearday_cos
		FROM posterior.calendar(ts::timestamp);
END $$;
COMMENT ON FUNCTION posterior.calendar(timestamptz) IS
	'the same of the local time that the session''s time zone gives';
CREATE FUNCTION posterior.calendar(ts date, OUT hour_sin float8, OUT hour_cos float8,
	OUT weekday_sin float8, OUT weekday_cos float8,
		OUT monthday_sin float8, OUT monthday_cos float8, OUT yearday_sin float8,
			OUT yearday_cos float8)
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 5 SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	SELECT * INTO hour_sin, hour_cos, weekday_sin, weekday_cos, monthday_sin, monthday_cos,
			yearday_sin, yearday_cos
		FROM posterior.calendar(ts::timestamp);
END $$;
COMMENT ON FUNCTION posterior.calendar(date) IS 'the same of the day''s beginning';
