-- latency-picture.sql: the server's latencies, their bands and what was flagged, as an SVG picture
-- on standard output.
--
-- Needs picture.sql. One panel per kind of transaction; latencies on a logarithmic scale.
--
-- SPDX-License-Identifier: PostgreSQL

SELECT picture.head(1180, 640, 'The server watches its own latencies',
	'pgbench against this server while a neighbour builds an index now and then; every transaction '
	'predicted from the 64 before it.');

CREATE TEMPORARY TABLE shown AS
	SELECT kind, t - min(t) OVER () AS t, log(ms) AS y, posterior.quantile(p, 0.05) AS low,
		posterior.quantile(p, 0.95) AS high,
		posterior.cdf(p, log(ms)) > 0.995 AS odd
	FROM server.latency LEFT JOIN server.watch USING (n);
CREATE TEMPORARY TABLE panel AS
	SELECT kind, ROW(72, 1150, 84 + 165 * place, 84 + 165 * place + 140, 0,
			(SELECT max(t) FROM shown),
		floor(y0), ceil(y1))::picture.frame AS f
	FROM (SELECT kind, row_number() OVER (ORDER BY kind) - 1 AS place,
			least(min(y), percentile_cont(0.02) WITHIN GROUP (ORDER BY low)) AS y0,
			greatest(max(y), percentile_cont(0.9) WITHIN GROUP (ORDER BY high)) AS y1
		FROM shown GROUP BY kind) k;

SELECT picture.y_axis(f, array_agg(e::float8 ORDER BY e),
		array_agg(trim_scale(10::numeric ^ e)::text ORDER BY e), 'ms')
	|| picture.label((f).l + 6, (f).t + 14, kind, 'font-weight="bold" fill="#111"')
FROM panel, generate_series((f).y0::integer, (f).y1::integer) e GROUP BY f, kind;
SELECT picture.x_axis(f, array_agg(s::float8 ORDER BY s), array_agg(s::text ORDER BY s), CASE
		WHEN (f).b > 550 THEN 'seconds' ELSE '' END)
FROM panel, generate_series(0, (f).x1::integer) s WHERE s <= (f).x1 GROUP BY f;
-- A band of its own for every transaction, never taller than the panel.
SELECT format('<path stroke="#9ecae1" stroke-width="2.4" stroke-opacity="0.75" d="M%s %sV%s"/>',
		picture.x(f, t),
	picture.y(f, greatest(low, (f).y0)), picture.y(f, least(high, (f).y1)))
FROM shown JOIN panel USING (kind) WHERE low < (f).y1 AND high > (f).y0 ORDER BY t;
SELECT picture.dot(f, t, y, 1.7, 'fill="#08519c"') FROM shown JOIN panel USING (kind)
	WHERE odd IS NOT TRUE ORDER BY t;
SELECT picture.dot(f, t, y, 5.5, 'fill="none" stroke="#c0262d" stroke-width="1.5"')
	|| picture.dot(f, t, y, 2, 'fill="#c0262d"')
FROM shown JOIN panel USING (kind) WHERE odd ORDER BY t;
SELECT picture.legend(90, 618,
		'<path d="M4 -6V6M10 -6V6M16 -6V6M22 -6V6" stroke="#9ecae1" stroke-width="2.4"/>',
		'90 % band of the prediction')
	|| picture.legend(320, 618, '<circle cx="13" r="2" fill="#08519c"/>', 'what it took')
	|| picture.legend(470, 618,
			'<circle cx="13" r="5.5" fill="none" stroke="#c0262d" stroke-width="1.5"/><circle '
			'cx="13" r="2" fill="#c0262d"/>',
		'flagged: a chance below 1 in 200');
SELECT picture.foot();
