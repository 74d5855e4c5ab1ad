-- feeder-picture.sql: one case's bands and draws, and the joint answers of all cases, as an SVG
-- picture on standard output.
--
-- Needs picture.sql and the psql variable case_no.
--
-- SPDX-License-Identifier: PostgreSQL

SELECT picture.head(1180, 560, 'The voltage of a feeder whose southern meters are silent',
	format('33-bus feeder, unseen case %s; 64 load inputs, 16 of them missing. Predicted by '
		'pg_posterior from solved cases.', :case_no));

-- The left panel: every branch is a line of its own, from the bus that feeds it to its end.
CREATE TEMPORARY TABLE paper AS
	SELECT ROW(72, 770, 84, 480, 0.3, 33.7, 0.875, 1.005)::picture.frame AS f;
CREATE TEMPORARY TABLE shown AS
	SELECT bus, branch, b.v, posterior.median(b.p) AS median, posterior.quantile(b.p, 0.05) AS low,
		posterior.quantile(b.p, 0.95) AS high
	FROM feeder.band b JOIN feeder.bus USING (bus) WHERE case_no = :case_no;

SELECT picture.y_axis(f, array_agg(t::float8 ORDER BY t), array_agg(t::text ORDER BY t),
		'voltage, p.u.')
FROM paper, generate_series(0.88, 1.00, 0.02) t GROUP BY f;
SELECT picture.x_axis(f, array_agg(t ORDER BY t), array_agg(t::text ORDER BY t), 'bus') FROM paper,
	unnest(ARRAY[2, 6, 10, 14, 18, 22, 25, 29, 33]::float8[]) t GROUP BY f;
SELECT format('<path stroke="#ddd" stroke-dasharray="2 4" d="M%s %sV%s"/>',
		picture.x(f, min(bus) - 0.5), (f).t, (f).b)
FROM paper, shown WHERE branch <> 'main' GROUP BY f, branch;
SELECT picture.label(picture.x(f, avg(bus))::float8, (f).t + 2, branch,
		'text-anchor="middle" fill="#888"') FROM paper, shown GROUP BY f, branch;
SELECT picture.band(f, array_agg(bus::float8 ORDER BY bus), array_agg(low ORDER BY bus),
		array_agg(high ORDER BY bus), 'fill="#9ecae1" fill-opacity="0.65"')
FROM paper, shown GROUP BY f, branch;
SELECT picture.line(f, array_agg(bus ORDER BY bus), array_agg(y ORDER BY bus),
		'stroke="#e6862e" stroke-width="0.8" stroke-opacity="0.55"')
FROM (SELECT draw, bus, branch, y
		FROM feeder.joint JOIN (SELECT bus, row_number() OVER (ORDER BY bus) AS ord
				FROM feeder.weak) w USING (ord) JOIN feeder.bus USING (bus)
		WHERE case_no = :case_no AND draw <= 40) d, paper
GROUP BY f, draw, branch;
SELECT picture.line(f, array_agg(bus ORDER BY bus), array_agg(median ORDER BY bus),
		'stroke="#08519c" stroke-width="1.8"') FROM paper, shown GROUP BY f, branch;
SELECT picture.dot(f, bus, v, 3.2, 'fill="#111"') FROM paper, shown ORDER BY bus;
SELECT picture.line(f, ARRAY[0.3, 33.7], ARRAY[0.92, 0.92],
		'stroke="#c0262d" stroke-width="1.2" stroke-dasharray="7 4"')
	|| picture.label(picture.x(f, 22)::float8, picture.y(f, 0.92)::float8 - 6, '0.92 p.u.',
			'text-anchor="middle" fill="#c0262d"') FROM paper;
SELECT picture.legend(90, 542,
		'<rect y="-6" width="26" height="12" fill="#9ecae1" fill-opacity="0.65"/><path d="M0 0H26" '
		'stroke="#08519c" stroke-width="1.8"/>', 'median and 90 % band')
	|| picture.legend(290, 542,
			'<path d="M0 3L13 -3L26 1M0 -2L13 4L26 -4" fill="none" stroke="#e6862e"/>',
			'joint draws, the ten weak buses')
	|| picture.legend(545, 542, '<circle cx="13" r="3.2" fill="#111"/>', 'exact power flow');

-- The right panel: each case once as joint draws, once as multiplied marginals, against the
-- solver's own answer.
CREATE TEMPORARY TABLE square AS
	SELECT ROW(850, 1140, 140, 430, -0.02, 1.02, -0.02, 1.02)::picture.frame AS f;
SELECT picture.label((f).l, (f).t - 38, 'P(any bus below 0.92 p.u.), twenty cases',
		'font-weight="bold" fill="#111"')
	|| picture.y_axis(f, ARRAY[0, 0.25, 0.5, 0.75, 1],
			ARRAY['0', '0.25', '0.5', '0.75', '1'], 'answer')
	|| picture.x_axis(f, ARRAY[0, 0.25, 0.5, 0.75, 1], ARRAY['0', '0.25', '0.5', '0.75', '1'],
			'answer of the solver (Monte Carlo)')
	|| picture.line(f, ARRAY[0, 1], ARRAY[0, 1], 'stroke="#999" stroke-dasharray="4 4"')
		FROM square;
SELECT picture.line(f, ARRAY[solver, solver]::float8[], ARRAY[joint, multiplied]::float8[],
		'stroke="#ccc"')
	|| picture.dot(f, solver::float8, multiplied, 4.5,
			'fill="white" stroke="#777" stroke-width="1.4"')
	|| picture.dot(f, solver::float8, joint::float8, 4.5, 'fill="#e6862e"')
FROM square, feeder.answer ORDER BY case_no;
SELECT picture.legend(850, 520, '<circle cx="13" r="4.5" fill="#e6862e"/>', 'joint draws')
	|| picture.legend(980, 520,
			'<circle cx="13" r="4.5" fill="white" stroke="#777" stroke-width="1.4"/>',
			'multiplied marginals');
SELECT picture.foot();
