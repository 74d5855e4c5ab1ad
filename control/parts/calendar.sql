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

CREATE FUNCTION posterior.calendar(ts timestamp, OUT hour_sin float8, OUT hour_cos float8,
	OUT weekday_sin float8, OUT weekday_cos float8,
		OUT monthday_sin float8, OUT monthday_cos float8, OUT yearday_sin float8,
			OUT yearday_cos float8)
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 5 SET search_path = pg_catalog, pg_temp AS $$
	SELECT sind(h), cosd(h), sind(w), cosd(w), sind(m), cosd(m), sind(y), cosd(y)
	FROM (SELECT extract(epoch FROM posterior_internal.finite_time(ts) - date_trunc('day',
			ts))::float8 / 86400 AS day) a,
		LATERAL (SELECT 360 * day AS h, 360 * (extract(isodow FROM ts)::float8 - 1 + day) / 7 AS w,
			360 * (extract(day FROM ts)::float8 - 1 + day) / extract(day
				FROM date_trunc('month', ts) + interval '1 month' - interval '1 day')::float8 AS m,
			360 * (extract(doy FROM ts)::float8 - 1 + day) / 365.25 AS y) b
$$;
COMMENT ON FUNCTION posterior.calendar(timestamp) IS
	'hour, weekday, day of month and day of year as sine and cosine, for features';
CREATE FUNCTION posterior.calendar(ts timestamptz, OUT hour_sin float8, OUT hour_cos float8,
	OUT weekday_sin float8, OUT weekday_cos float8,
		OUT monthday_sin float8, OUT monthday_cos float8, OUT yearday_sin float8,
			OUT yearday_cos float8)
	LANGUAGE sql STABLE STRICT PARALLEL SAFE COST 5 SET search_path = pg_catalog, pg_temp AS $$
	SELECT * FROM posterior.calendar(ts::timestamp)
$$;
COMMENT ON FUNCTION posterior.calendar(timestamptz) IS
	'the same of the local time that the session''s time zone gives';
CREATE FUNCTION posterior.calendar(ts date, OUT hour_sin float8, OUT hour_cos float8,
	OUT weekday_sin float8, OUT weekday_cos float8,
		OUT monthday_sin float8, OUT monthday_cos float8, OUT yearday_sin float8,
			OUT yearday_cos float8)
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 5 SET search_path = pg_catalog, pg_temp AS $$
	SELECT * FROM posterior.calendar(ts::timestamp)
$$;
COMMENT ON FUNCTION posterior.calendar(date) IS 'the same of the day''s beginning';
