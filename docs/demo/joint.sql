-- joint.sql: will any bus fall below 0.92 p.u., when 16 of the 64 meters are silent?
--
-- Asked for the ten buses that the nominal flow brings below 0.925 p.u. The context is 60 cases
-- with these buses (600 rows, about the longest context that tabular_small was trained on): a
-- case's rows differ in the bus alone, and what moves them together, the unreported
-- loads, is to be learnt from them. The truth is the solver's Monte Carlo (feeder.truth), 200
-- draws per case like the model's.
--
-- SPDX-License-Identifier: PostgreSQL

CREATE TABLE feeder.weak AS
	SELECT bus FROM feeder.place,
		(SELECT (feeder.solve(array_agg(p_kw ORDER BY bus), array_agg(q_kvar ORDER BY bus))).v
				FROM feeder.bus) nominal
	WHERE nominal.v[bus] < 0.925;

CREATE VIEW feeder.known AS
	SELECT * FROM feeder.history WHERE case_no <= 60 AND bus IN (SELECT bus FROM feeder.weak);
CREATE VIEW feeder.asked AS
	SELECT * FROM feeder.history WHERE case_no > 300 AND case_no % 2 = 0
		AND bus IN (SELECT bus FROM feeder.weak);

\echo 'feeder.known: 60 solved cases, ten weak buses each; feeder.asked: 20 unseen, silent meters.'
\echo
\set ECHO all
CREATE TABLE feeder.memory AS
	SELECT posterior.context(v, ohm, name, :loads) AS ctx FROM feeder.known;

CREATE TABLE feeder.joint AS
	SELECT case_no, draw, ord, y
	FROM feeder.memory, (SELECT DISTINCT case_no FROM feeder.asked) c,
		LATERAL (SELECT array_agg(r) AS buses
			FROM (SELECT ohm, name, :loads FROM feeder.asked WHERE case_no = c.case_no
					ORDER BY bus) r) q,
		LATERAL posterior.sample(ctx, buses, draws => 200, seed => 1);

CREATE TABLE feeder.alone AS
	SELECT case_no, bus, v, posterior.predict(ctx, ohm, name, :loads) AS p
	FROM feeder.memory, feeder.asked;
\set ECHO none

CREATE TABLE feeder.answer AS
	SELECT case_no, solver, joint, multiplied, real
	FROM (SELECT case_no, avg(low::integer) AS solver
			FROM (SELECT case_no, draw, bool_or(v[bus] < 0.92) AS low FROM feeder.truth, feeder.weak
					GROUP BY case_no, draw) d
			GROUP BY case_no) s
		JOIN (SELECT case_no, avg(low::integer) AS joint
			FROM (SELECT case_no, draw, bool_or(y < 0.92) AS low FROM feeder.joint
					GROUP BY case_no, draw) d GROUP BY case_no) j
			USING (case_no)
		JOIN (SELECT case_no,
				1 - exp(sum(ln(greatest(1 - posterior.cdf(p, 0.92), 1e-12)))) AS multiplied,
			bool_or(v < 0.92) AS real
			FROM feeder.alone GROUP BY case_no) m USING (case_no);

\echo
\echo 'P(any bus below 0.92 p.u.): ten of the twenty cases'
SELECT case_no AS "case", round(solver, 2) AS solver, round(joint, 2) AS "joint draws",
	round(multiplied::numeric, 2) AS "multiplied marginals", CASE WHEN real THEN 'yes' ELSE 'no'
		END AS "did it happen"
FROM feeder.answer ORDER BY case_no LIMIT 10;

\echo 'All twenty: distance from the solver, Brier score of what happened. Lower is better.'
SELECT answer, round(avg(abs(p - solver))::numeric, 3) AS "mean distance from solver",
	round(avg(p - solver)::numeric, 3) AS "too high by",
		round(avg((p - real::integer) ^ 2)::numeric, 3) AS "Brier score"
FROM feeder.answer, LATERAL (VALUES (1, 'solver', solver), (2, 'joint draws', joint),
		(3, 'multiplied marginals', multiplied)) m (place, answer, p)
GROUP BY place, answer ORDER BY place;

\echo 'The ten voltages of a case that really occurred: mean log density. Higher is better.'
\set ECHO all
SELECT round(avg(joint)::numeric, 2) AS joint, round(avg(multiplied)::numeric, 2) AS multiplied
FROM (SELECT case_no, posterior.log_density(ctx, v, ohm, name, :loads ORDER BY bus) AS joint
		FROM feeder.memory, feeder.asked GROUP BY case_no) j
	JOIN (SELECT case_no, sum(posterior.log_pdf(p, v)) AS multiplied
		FROM feeder.alone GROUP BY case_no) m USING (case_no);
\set ECHO none
