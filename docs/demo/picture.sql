-- picture.sql: the few SVG shapes that the demo's pictures need, as SQL functions.
--
-- A picture.frame maps data coordinates to a rectangle of the page; every function returns SVG
-- text, and a picture is the string_agg of such texts between picture.head and picture.foot. Points
-- with a NULL coordinate break a line.
--
-- SPDX-License-Identifier: PostgreSQL

CREATE SCHEMA picture;

-- left, right, top, bottom on the page; x0 .. x1 and y0 .. y1 in the data.
CREATE TYPE picture.frame AS (l float8, r float8, t float8, b float8, x0 float8, x1 float8,
		y0 float8, y1 float8);

CREATE FUNCTION picture.x(f picture.frame, x float8) RETURNS numeric LANGUAGE sql IMMUTABLE AS
$$ SELECT round(((f).l + (x - (f).x0) / ((f).x1 - (f).x0) * ((f).r - (f).l))::numeric, 1) $$;

CREATE FUNCTION picture.y(f picture.frame, y float8) RETURNS numeric LANGUAGE sql IMMUTABLE AS
$$ SELECT round(((f).b - (y - (f).y0) / ((f).y1 - (f).y0) * ((f).b - (f).t))::numeric, 1) $$;

CREATE FUNCTION picture.head(width integer, height integer, title text, subtitle text) RETURNS text
LANGUAGE sql IMMUTABLE AS
$$ SELECT format('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %1$s %2$s" width="%1$s" '
	'height="%2$s" '
	'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#333">'
	'<rect width="100%%" height="100%%" fill="white"/>'
	'<text x="72" y="32" font-size="19" font-weight="bold" fill="#111">%3$s</text><text x="72" '
	'y="53" fill="#666">%4$s</text>',
	width, height, title, subtitle) $$;

CREATE FUNCTION picture.foot() RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT '</svg>'::text $$;

CREATE FUNCTION picture.label(x float8, y float8, text text, style text DEFAULT '') RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT format('<text x="%s" y="%s" %s>%s</text>', x, y,
		style, text) $$;

-- The line through the points, in the order of the arrays.
CREATE FUNCTION picture.line(f picture.frame, x float8[], y float8[], style text) RETURNS text
LANGUAGE sql IMMUTABLE AS
$$ SELECT format('<path fill="none" stroke-linejoin="round" %s d="%s"/>', style, string_agg(
		CASE WHEN after_gap THEN 'M' ELSE 'L' END || picture.x(f, px) || ' ' || picture.y(f, py), ''
			ORDER BY i) FILTER (WHERE NOT gap))
	FROM (SELECT i, px, py, gap, lag(gap, 1, true) OVER (ORDER BY i) AS after_gap
		FROM (SELECT i, x[i] AS px, y[i] AS py, x[i] IS NULL OR y[i] IS NULL AS gap
				FROM generate_subscripts(x, 1) i) p) p $$;

-- The area between lo and hi.
CREATE FUNCTION picture.band(f picture.frame, x float8[], lo float8[], hi float8[], style text)
	RETURNS text
LANGUAGE sql IMMUTABLE AS
$$ SELECT format('<polygon stroke="none" %s points="%s %s"/>', style,
		string_agg(picture.x(f, x[i]) || ',' || picture.y(f, hi[i]), ' ' ORDER BY i),
		string_agg(picture.x(f, x[i]) || ',' || picture.y(f, lo[i]), ' ' ORDER BY i DESC))
	FROM generate_subscripts(x, 1) i $$;

CREATE FUNCTION picture.dot(f picture.frame, x float8, y float8, radius float8, style text)
	RETURNS text
LANGUAGE sql IMMUTABLE AS
$$ SELECT format('<circle cx="%s" cy="%s" r="%s" %s/>', picture.x(f, x), picture.y(f, y),
		radius, style) $$;

-- Axes with grid lines: ticks in data coordinates, their labels, and the axis' name.
CREATE FUNCTION picture.y_axis(f picture.frame, ticks float8[], labels text[], name text)
	RETURNS text
LANGUAGE sql IMMUTABLE AS
$$ SELECT string_agg(
		format('<path stroke="#e3e3e3" d="M%1$s %3$sH%2$s"/><text x="%4$s" y="%5$s" '
			'text-anchor="end">%6$s</text>',
		(f).l, (f).r, picture.y(f, ticks[i]), (f).l - 8, picture.y(f, ticks[i]) + 4.5, labels[i]),
			'' ORDER BY i)
	|| format('<text transform="translate(%s %s) rotate(-90)" text-anchor="middle">%s</text>',
			(f).l - 52, ((f).t + (f).b) / 2, name)
	FROM generate_subscripts(ticks, 1) i $$;

CREATE FUNCTION picture.x_axis(f picture.frame, ticks float8[], labels text[], name text)
	RETURNS text
LANGUAGE sql IMMUTABLE AS
$$ SELECT format('<path stroke="#555" d="M%s %sH%s"/>', (f).l, (f).b, (f).r)
	|| string_agg(format(
				'<path stroke="#555" d="M%1$s %2$sv5"/><text x="%1$s" y="%3$s" '
				'text-anchor="middle">%4$s</text>',
		picture.x(f, ticks[i]), (f).b, (f).b + 20, labels[i]), '' ORDER BY i)
	|| format('<text x="%s" y="%s" text-anchor="middle">%s</text>', ((f).l + (f).r) / 2,
			(f).b + 42, name)
	FROM generate_subscripts(ticks, 1) i $$;

-- One line of a legend: a swatch (SVG of a shape in a box of 26 x 10 whose left end is at 0 0) and
-- its text.
CREATE FUNCTION picture.legend(x float8, y float8, swatch text, text text)
	RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT format('<g transform="translate(%s %s)">%s<text x="34" y="4.5">%s</text></g>', x, y,
		swatch, text) $$;
