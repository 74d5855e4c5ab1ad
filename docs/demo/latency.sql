-- latency.sql: where the latencies of the server's own transactions become rows.
--
-- SPDX-License-Identifier: PostgreSQL

CREATE SCHEMA server;

-- pgbench's log, as it is written: one line per transaction, latencies in microseconds.
CREATE TABLE server.log (client integer, transaction integer, latency float8, script integer,
		epoch bigint, us integer);

CREATE TABLE server.latency (
	n			bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	t			float8 NOT NULL,		-- end of the transaction, seconds
	kind		text NOT NULL,			-- lookup, transfer or report
	ms			float8 NOT NULL,
	previous	float8					-- log latency of the transaction of this kind before it
);

CREATE TABLE server.watch (n bigint PRIMARY KEY, p posterior.distribution);
