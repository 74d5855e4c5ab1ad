-- history.sql: the solved cases as tables that a prediction can read.
--
-- feeder.situation has one row for each case: its 64 load inputs p2 .. p33, q2 .. q33, NULL where a
-- meter is silent. In every second case the branch `south` (buses 26 to 33, 16 of the inputs) does
-- not report. Cases 1 to 300 are the history, later ones are unseen.
--
-- SPDX-License-Identifier: PostgreSQL

CREATE VIEW feeder.report AS
	SELECT case_no, bus, CASE WHEN reports THEN p_kw END AS p_kw, CASE WHEN reports
		THEN q_kvar END AS q_kvar
	FROM (SELECT *, NOT (branch = 'south' AND case_no % 2 = 0) AS reports FROM feeder.load) l;

SELECT format('CREATE TABLE feeder.situation AS SELECT case_no, %s, %s FROM feeder.report
	GROUP BY case_no',
	string_agg(format('max(p_kw) FILTER (WHERE bus = %1$s) AS p%1$s', bus), ', ' ORDER BY bus),
	string_agg(format('max(q_kvar) FILTER (WHERE bus = %1$s) AS q%1$s', bus), ', ' ORDER BY bus))
		FROM feeder.bus \gexec

-- How far a bus is from the substation, in ohm along its lines.
CREATE TABLE feeder.place AS
	WITH RECURSIVE path (bus, ohm) AS (
		SELECT 1, 0::float8
		UNION ALL
		SELECT b.bus, path.ohm + sqrt(b.r_ohm ^ 2 + b.x_ohm ^ 2) FROM path
			JOIN feeder.bus b ON b.fed_by = path.bus
	)
	SELECT bus, ohm FROM path WHERE bus > 1;

-- One row for each case and bus: its voltage, where it is, and what the meters of the case said.
CREATE VIEW feeder.history AS
	SELECT bus, solution.v[bus] AS v, ohm, bus::text AS name, situation.*
	FROM feeder.situation JOIN feeder.solution USING (case_no), feeder.place;

CREATE TABLE feeder.truth (case_no integer, draw integer, v float8[]);
ANALYZE feeder.situation, feeder.solution;
