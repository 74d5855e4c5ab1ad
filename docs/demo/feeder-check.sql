-- feeder-check.sql: the nominal case against the published answer; an error where they differ.
--
-- SPDX-License-Identifier: PostgreSQL

CREATE TEMPORARY TABLE nominal AS
	SELECT p, q, s.* FROM (SELECT sum(p_kw) AS p, sum(q_kvar) AS q,
			array_agg(p_kw ORDER BY bus) AS ps, array_agg(q_kvar ORDER BY bus) AS qs
			FROM feeder.bus) l,
		feeder.solve(ps, qs) s;
SELECT p AS "load, kW", q AS kvar, bus AS "lowest at bus", round(u::numeric, 4) AS "voltage, p.u.",
	round(loss_kw::numeric, 1) AS "losses, kW", sweeps
FROM nominal, LATERAL (SELECT bus, u FROM unnest(v) WITH ORDINALITY x (u, bus) ORDER BY u
		LIMIT 1) lowest;
DO $$
BEGIN
	IF NOT EXISTS (SELECT FROM nominal WHERE p = 3715 AND q = 2300
			AND round(v[18]::numeric, 4) = 0.9131 AND round(loss_kw::numeric, 1) = 202.7) THEN
		RAISE 'the power flow does not give the published answer';
	END IF;
END $$;
