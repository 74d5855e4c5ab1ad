-- cases.sql: random load cases of the feeder, solved exactly.
--
-- The logarithm of a load's ratio to its nominal value is common + branch + own, three independent
-- normal variables: of the weather, of the branch, and of the customer. The reactive load follows
-- the active one with a little noise of its own. Because this is a Gaussian model, what the known
-- loads say about unknown ones is known exactly, and the solver can compute distributions for a
-- case whose meters are partly silent by Monte Carlo.
--
-- Needs feeder.sql and the psql variable seed.
--
-- SPDX-License-Identifier: PostgreSQL

CREATE TABLE feeder.habits AS
	SELECT -0.17::float8 AS common_mean, 0.10::float8 AS common_sd, 0.16::float8 AS branch_sd,
		0.20::float8 AS own_sd, 0.05::float8 AS reactive_sd;

-- A standard normal number that is a function of its key: the same on every machine and in every
-- order of evaluation.
CREATE FUNCTION feeder.normal(key text) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT sqrt(-2 * ln(((hashtextextended(key, 1) >> 11 & 9007199254740991)
			+ 0.5) / 9007199254740992))
	* cos(2 * pi() * (hashtextextended(key, 2) >> 11 & 9007199254740991) / 9007199254740992) $$;

CREATE TABLE feeder.load AS
	SELECT case_no, bus, branch, p_kw * exp(u) AS p_kw,
		q_kvar * exp(u + reactive_sd * feeder.normal(key || 'reactive')) AS q_kvar
	FROM feeder.bus, feeder.habits, generate_series(1, :cases) case_no,
		format('%s case %s bus %s ', :seed, case_no, bus) key,
		LATERAL (SELECT common_mean
				+ common_sd * feeder.normal(format('%s case %s common', :seed, case_no))
			+ branch_sd * feeder.normal(format('%s case %s branch %s', :seed, case_no, branch))
			+ own_sd * feeder.normal(key || 'active')) own(u);

CREATE TABLE feeder.solution AS
	SELECT case_no, s.v, s.loss_kw
	FROM (SELECT case_no, array_agg(p_kw ORDER BY bus) AS p, array_agg(q_kvar ORDER BY bus) AS q
			FROM feeder.load GROUP BY case_no) c,
		LATERAL feeder.solve(p, q) s;

ANALYZE feeder.load;

-- Other cases in which the loads that branch `silent` does not report are drawn from what the
-- reported ones say about them: the exact Gaussian posterior of `common`, then `branch` and `own`
-- anew. Returns the solved draws.
CREATE FUNCTION feeder.imagine(case_nos integer[], silent text, draws integer, seed integer)
RETURNS TABLE (case_no integer, draw integer, v float8[]) LANGUAGE sql STABLE AS $$
	WITH branch_mean AS (
		SELECT l.case_no, branch, avg(ln(l.p_kw / b.p_kw)) AS mean,
			branch_sd ^ 2 + own_sd ^ 2 / count(*) AS variance
		FROM feeder.load l JOIN feeder.bus b USING (bus, branch), feeder.habits
		WHERE l.case_no = ANY (case_nos) AND branch <> silent
		GROUP BY l.case_no, branch, branch_sd, own_sd
	), belief AS (
		SELECT m.case_no, (common_mean / common_sd ^ 2 + sum(mean / variance)) / (1 / common_sd ^ 2
				+ sum(1 / variance)) AS mean,
			1 / sqrt(1 / common_sd ^ 2 + sum(1 / variance)) AS sd
		FROM branch_mean m, feeder.habits GROUP BY m.case_no, common_mean, common_sd
	), imagined AS (
		SELECT belief.case_no, d AS draw, bus,
			CASE WHEN branch = silent THEN b.p_kw * exp(u) ELSE l.p_kw END AS p,
			CASE WHEN branch = silent
				THEN b.q_kvar * exp(u + reactive_sd * feeder.normal(key || bus || 'reactive'))
				ELSE l.q_kvar END AS q
		FROM belief JOIN feeder.load l USING (case_no) JOIN feeder.bus b USING (bus, branch),
			feeder.habits,
			generate_series(1, draws) d, format('%s case %s draw %s ', seed, belief.case_no, d) key,
			LATERAL (SELECT mean + sd * feeder.normal(key || 'common')
					+ branch_sd * feeder.normal(key || 'branch')
				+ own_sd * feeder.normal(key || bus || 'active')) unknown(u)
	)
	SELECT i.case_no, i.draw, s.v
	FROM (SELECT case_no, draw, array_agg(p ORDER BY bus) AS p, array_agg(q ORDER BY bus) AS q
			FROM imagined GROUP BY case_no, draw) i,
		LATERAL feeder.solve(i.p, i.q) s
$$;
