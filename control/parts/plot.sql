-- ---- plot ---------------------------------------------------------------------------------------

CREATE FUNCTION posterior_internal.plot_add(points float8[], x float8, y float8, low float8,
	middle float8, high float8) RETURNS float8[]
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN x IS NULL THEN points ELSE points || ARRAY[x, coalesce(y, 'NaN'),
		coalesce(low, 'NaN'), coalesce(middle, 'NaN'), coalesce(high, 'NaN')] END
$$;
COMMENT ON FUNCTION posterior_internal.plot_add(float8[], float8, float8, float8, float8,
	float8) IS 'gathers the points of a picture';

-- One SVG: a band, the line of its middle, and points of what was observed. Points are five numbers
-- each.
CREATE FUNCTION posterior_internal.plot_svg(points float8[]) RETURNS text
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	left_x float8;
	right_x float8;
	bottom float8;
	top float8;
	upper_edge text;
	lower_edge text;
	line text;
	dots text;
	labels text;
BEGIN
	IF cardinality(points) = 0 THEN
		RETURN NULL;
	END IF;
	IF EXISTS (SELECT FROM unnest(points) v WHERE v IN ('Infinity', '-Infinity')) THEN
		RAISE EXCEPTION 'a picture cannot show an infinite value'
			USING ERRCODE = 'numeric_value_out_of_range',
				HINT = 'Leave these rows out, or give NULL for what is not to be drawn.';
	END IF;
	SELECT min(v) FILTER (WHERE k = 0), max(v) FILTER (WHERE k = 0),
		min(v) FILTER (WHERE k > 0 AND v <> 'NaN'), max(v) FILTER (WHERE k > 0 AND v <> 'NaN')
	INTO left_x, right_x, bottom, top FROM (SELECT v, (i - 1) % 5 AS k
		FROM unnest(points) WITH ORDINALITY u (v, i)) p;
	IF bottom IS NULL THEN
		RETURN NULL;
	END IF;
	right_x := CASE WHEN right_x > left_x THEN right_x ELSE left_x + 1 END;
	top := CASE WHEN top > bottom THEN top ELSE bottom + 1 END;
	SELECT string_agg(format('%s,%s', x,
		round((370 - 340 * (points[i + 4] - bottom) / (top - bottom))::numeric, 1)),
		' ' ORDER BY i) FILTER (WHERE points[i + 4] <> 'NaN' AND points[i + 2] <> 'NaN'),
		string_agg(format('%s,%s', x, round((370 - 340 * (points[i + 2] - bottom)
			/ (top - bottom))::numeric, 1)),
			' ' ORDER BY i DESC) FILTER (WHERE points[i + 4] <> 'NaN' AND points[i + 2] <> 'NaN'),
		string_agg(format('%s,%s', x, round((370 - 340 * (points[i + 3] - bottom)
			/ (top - bottom))::numeric, 1)), ' ' ORDER BY i) FILTER (WHERE points[i + 3] <> 'NaN'),
		string_agg(format('<circle cx="%s" cy="%s" r="2"/>', x,
			round((370 - 340 * (points[i + 1] - bottom) / (top - bottom))::numeric, 1)),
			'' ORDER BY i) FILTER (WHERE points[i + 1] <> 'NaN')
	INTO upper_edge, lower_edge, line, dots
	FROM (SELECT i, round((60 + 720 * (points[i] - left_x) / (right_x - left_x))::numeric, 1) AS x
		FROM generate_series(1, cardinality(points), 5) i) p;
	SELECT string_agg(format('<text x="54" y="%s" text-anchor="end">%s</text>',
		round((374 - 340 * s)::numeric, 1),
		trim(to_char((bottom + s * (top - bottom))::float8, '9.999EEEE'))), '') INTO labels
	FROM unnest(ARRAY[0, 0.5, 1]) s;
	IF greatest(abs(bottom), abs(top)) < 1e6 AND top - bottom > 1e-3 THEN
		SELECT string_agg(format('<text x="54" y="%s" text-anchor="end">%s</text>',
			round((374 - 340 * s)::numeric, 1),
			trim_scale(round((bottom + s * (top - bottom))::numeric,
			CASE WHEN top - bottom > 20 THEN 0 ELSE 3 END))), '') INTO labels
		FROM unnest(ARRAY[0, 0.5, 1]) s;
	END IF;
	RETURN
		concat('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 400" '
			'font-family="sans-serif" font-size="12">',
		'<rect width="800" height="400" fill="white"/><path d="M60 30V370H780" fill="none" '
		'stroke="#888"/>',
			labels,
		'<polygon fill="#9ecae1" fill-opacity="0.6" points="' || upper_edge || ' ' || lower_edge
			|| '"/>',
		'<polyline fill="none" stroke="#08519c" stroke-width="1.5" points="' || line || '"/>',
		'<g fill="#222">' || dots || '</g>', '</svg>');
END $$;
COMMENT ON FUNCTION posterior_internal.plot_svg(float8[]) IS 'a picture of bands over data';

CREATE AGGREGATE posterior.plot(x float8, y float8, low float8, middle float8, high float8) (
	SFUNC = posterior_internal.plot_add, STYPE = float8[], INITCOND = '{}',
		FINALFUNC = posterior_internal.plot_svg, PARALLEL = SAFE);
COMMENT ON AGGREGATE posterior.plot(float8, float8, float8, float8,
	float8) IS
	'an SVG picture of what was observed (y) over a band and its middle; ORDER BY x inside';

-- The same in characters: one line per row of the picture, from the top.
CREATE FUNCTION posterior_internal.plot_lines(points float8[]) RETURNS text
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	wide constant integer := 72;
	high constant integer := 16;
	left_x float8;
	right_x float8;
	bottom float8;
	top float8;
	picture text[] := array_fill(' '::text, ARRAY[high, wide]);
	c integer;
	r integer;
	result text := '';
BEGIN
	SELECT min(v) FILTER (WHERE k = 0), max(v) FILTER (WHERE k = 0),
		min(v) FILTER (WHERE k > 0 AND v <> 'NaN'), max(v) FILTER (WHERE k > 0 AND v <> 'NaN')
	INTO left_x, right_x, bottom, top FROM (SELECT v, (i - 1) % 5 AS k
		FROM unnest(points) WITH ORDINALITY u (v, i)) p;
	IF bottom IS NULL OR 'Infinity' IN (right_x, top) OR '-Infinity' IN (left_x, bottom) THEN
		RETURN NULL;
	END IF;
	right_x := CASE WHEN right_x > left_x THEN right_x ELSE left_x + 1 END;
	top := CASE WHEN top > bottom THEN top ELSE bottom + 1 END;
	FOR i IN 1 .. cardinality(points) BY 5 LOOP
		c := 1 + round((wide - 1) * (points[i] - left_x) / (right_x - left_x));
		IF points[i + 2] <> 'NaN' AND points[i + 4] <> 'NaN' THEN
			FOR r IN round((high - 1) * (points[i + 2] - bottom) / (top - bottom))::integer ..
				round((high - 1) * (points[i + 4] - bottom) / (top - bottom))::integer LOOP
				picture[high - r][c] := CASE WHEN picture[high - r][c] = ' ' THEN '░'
					ELSE picture[high - r][c] END;
			END LOOP;
		END IF;
		IF points[i + 3] <> 'NaN' THEN
			picture[high - round((high - 1) * (points[i + 3] - bottom)
				/ (top - bottom))::integer][c] := '▒';
		END IF;
		IF points[i + 1] <> 'NaN' THEN
			picture[high - round((high - 1) * (points[i + 1] - bottom)
				/ (top - bottom))::integer][c] := '█';
		END IF;
	END LOOP;
	FOR r IN 1 .. high LOOP
		result := result || CASE WHEN r > 1 THEN E'\n' ELSE '' END
			|| lpad(CASE r WHEN 1 THEN trim(to_char(top, '9.99EEEE'))
				WHEN high THEN trim(to_char(bottom, '9.99EEEE')) ELSE '' END, 10) || ' |'
			|| rtrim((SELECT string_agg(picture[r][k], '' ORDER BY k)
				FROM generate_series(1, wide) k));
	END LOOP;
	RETURN result;
END $$;
COMMENT ON FUNCTION posterior_internal.plot_lines(float8[]) IS 'bands over data in characters';

CREATE AGGREGATE posterior.plot_text(x float8, y float8, low float8, middle float8, high float8) (
	SFUNC = posterior_internal.plot_add, STYPE = float8[], INITCOND = '{}',
		FINALFUNC = posterior_internal.plot_lines, PARALLEL = SAFE);
COMMENT ON AGGREGATE posterior.plot_text(float8, float8, float8, float8,
	float8) IS 'the picture of posterior.plot in block characters, for a terminal';

CREATE FUNCTION posterior.plot_histogram(shares float8[]) RETURNS text
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	wrong float8 := (SELECT s FROM unnest(shares) s WHERE NOT (s >= 0 AND s <= 1e6) LIMIT 1);
BEGIN
	IF wrong IS NOT NULL THEN
		RAISE EXCEPTION 'shares must be from 0 on' USING ERRCODE = 'numeric_value_out_of_range',
			DETAIL = format('One is %s.', wrong),
			HINT = 'They are those of a histogram, as in the column pit of posterior.evaluate.';
	END IF;
	RETURN (SELECT string_agg(format('%s %s %s', lpad(to_char((i - 1)::float8 / n, 'FM0.00'), 5),
		rpad(repeat('█', round(40 * s / nullif(top, 0))::integer), 40),
		round(100 * s::numeric) || ' %'), E'\n' ORDER BY i)
	FROM (SELECT i, s, max(s) OVER () AS top, count(*) OVER () AS n
		FROM unnest(shares) WITH ORDINALITY u (s, i)) p);
END $$;
COMMENT ON FUNCTION posterior.plot_histogram(float8[]) IS
	'shares, such as a PIT histogram, as bars of block characters';
