-- feeder.sql: the 33-bus distribution feeder of Baran and Wu, and an exact power flow for it.
--
-- M. E. Baran, F. F. Wu: Network reconfiguration in distribution systems for loss reduction and
-- load balancing, IEEE Transactions on Power Delivery 4 (1989) 1401-1407. 12.66 kV, bus 1 is the
-- substation (1.0 p.u.), 32 lines in service, loads 3715 kW and 2300 kvar. Line n is the one that
-- feeds bus n; every bus has a larger number than the one that feeds it, which is what the two
-- sweeps below rely on.
--
-- SPDX-License-Identifier: PostgreSQL

CREATE SCHEMA feeder;

CREATE TABLE feeder.bus (
	bus		integer PRIMARY KEY,
	fed_by	integer NOT NULL,		-- the bus at the other end of the line
	r_ohm	float8 NOT NULL,		-- the line's resistance
	x_ohm	float8 NOT NULL,		-- the line's reactance
	p_kw	float8 NOT NULL,		-- nominal active load at the bus
	q_kvar	float8 NOT NULL,		-- nominal reactive load at the bus
	branch	text NOT NULL,			-- the part of the feeder it belongs to
	CHECK (fed_by < bus)
);

INSERT INTO feeder.bus VALUES
	( 2,  1, 0.0922, 0.0470, 100,  60, 'main'),
	( 3,  2, 0.4930, 0.2511,  90,  40, 'main'),
	( 4,  3, 0.3660, 0.1864, 120,  80, 'main'),
	( 5,  4, 0.3811, 0.1941,  60,  30, 'main'),
	( 6,  5, 0.8190, 0.7070,  60,  20, 'main'),
	( 7,  6, 0.1872, 0.6188, 200, 100, 'main'),
	( 8,  7, 0.7114, 0.2351, 200, 100, 'main'),
	( 9,  8, 1.0300, 0.7400,  60,  20, 'main'),
	(10,  9, 1.0440, 0.7400,  60,  20, 'main'),
	(11, 10, 0.1966, 0.0650,  45,  30, 'main'),
	(12, 11, 0.3744, 0.1238,  60,  35, 'main'),
	(13, 12, 1.4680, 1.1550,  60,  35, 'main'),
	(14, 13, 0.5416, 0.7129, 120,  80, 'main'),
	(15, 14, 0.5910, 0.5260,  60,  10, 'main'),
	(16, 15, 0.7463, 0.5450,  60,  20, 'main'),
	(17, 16, 1.2890, 1.7210,  60,  20, 'main'),
	(18, 17, 0.7320, 0.5740,  90,  40, 'main'),
	(19,  2, 0.1640, 0.1565,  90,  40, 'north'),
	(20, 19, 1.5042, 1.3554,  90,  40, 'north'),
	(21, 20, 0.4095, 0.4784,  90,  40, 'north'),
	(22, 21, 0.7089, 0.9373,  90,  40, 'north'),
	(23,  3, 0.4512, 0.3083,  90,  50, 'west'),
	(24, 23, 0.8980, 0.7091, 420, 200, 'west'),
	(25, 24, 0.8960, 0.7011, 420, 200, 'west'),
	(26,  6, 0.2030, 0.1034,  60,  25, 'south'),
	(27, 26, 0.2842, 0.1447,  60,  25, 'south'),
	(28, 27, 1.0590, 0.9337,  60,  20, 'south'),
	(29, 28, 0.8042, 0.7006, 120,  70, 'south'),
	(30, 29, 0.5075, 0.2585, 200, 600, 'south'),
	(31, 30, 0.9744, 0.9630, 150,  70, 'south'),
	(32, 31, 0.3105, 0.3619, 210, 100, 'south'),
	(33, 32, 0.3410, 0.5302,  60,  40, 'south');

-- Exact radial power flow for constant-power loads: p_kw[i], q_kvar[i] belong to bus i + 1 (32 of
-- each). Backward sweep: load currents are summed from the ends to the substation. Forward sweep:
-- voltages follow from the substation outwards. Repeated until no voltage moves by more than 1e-8
-- p.u. Returns the magnitudes v[1 .. 33] in p.u., the losses and the number of sweeps; raises an
-- error where the feeder cannot carry the load.
CREATE FUNCTION feeder.solve(p_kw float8[], q_kvar float8[], OUT v float8[], OUT loss_kw float8,
		OUT sweeps integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE STRICT AS $$
DECLARE
	kva CONSTANT float8 := 10000;								-- base of the per-unit system
	ohm CONSTANT float8 := 12.66 ^ 2 / (kva / 1000);
	fed_by integer[];
	r float8[];
	x float8[];
	vr float8[] := array_fill(1.0::float8, ARRAY[33]);		-- voltage: real and imaginary part
	vi float8[] := array_fill(0.0::float8, ARRAY[33]);
	-- current of the line that feeds the bus
	ir float8[];
	ii float8[];
	p float8;
	q float8;
	up integer;
	moved float8;
	newr float8;
	newi float8;
	square float8;
BEGIN
	IF cardinality(p_kw) <> 32 OR cardinality(q_kvar) <> 32 THEN
		RAISE 'the feeder has 32 loads' USING ERRCODE = 'array_subscript_error',
			DETAIL = format('Got %s active and %s reactive loads.', cardinality(p_kw),
					cardinality(q_kvar));
	END IF;
	SELECT array_agg(b.fed_by ORDER BY bus), array_agg(b.r_ohm / ohm ORDER BY bus),
		array_agg(b.x_ohm / ohm ORDER BY bus)
		INTO fed_by, r, x FROM feeder.bus b;
	sweeps := 0;
	LOOP
		sweeps := sweeps + 1;
		IF sweeps > 100 THEN
			RAISE 'the power flow does not converge' USING ERRCODE = 'numeric_value_out_of_range',
				DETAIL = 'The feeder cannot carry this load.';
		END IF;
		-- I = conj(S / V), then what flows on through the bus
		ir := array_fill(0.0::float8, ARRAY[33]);
		ii := array_fill(0.0::float8, ARRAY[33]);
		FOR i IN REVERSE 33 .. 2 LOOP
			p := p_kw[i - 1] / kva;
			q := q_kvar[i - 1] / kva;
			square := vr[i] * vr[i] + vi[i] * vi[i];
			ir[i] := ir[i] + (p * vr[i] + q * vi[i]) / square;
			ii[i] := ii[i] + (p * vi[i] - q * vr[i]) / square;
			up := fed_by[i - 1];
			ir[up] := ir[up] + ir[i];
			ii[up] := ii[up] + ii[i];
		END LOOP;
		moved := 0;
		FOR i IN 2 .. 33 LOOP
			up := fed_by[i - 1];
			newr := vr[up] - (r[i - 1] * ir[i] - x[i - 1] * ii[i]);
			newi := vi[up] - (r[i - 1] * ii[i] + x[i - 1] * ir[i]);
			moved := greatest(moved, abs(newr - vr[i]) + abs(newi - vi[i]));
			vr[i] := newr;
			vi[i] := newi;
		END LOOP;
		EXIT WHEN moved < 1e-8;
	END LOOP;
	SELECT array_agg(sqrt(vr[i] * vr[i] + vi[i] * vi[i]) ORDER BY i) INTO v
		FROM generate_series(1, 33) i;
	SELECT kva * sum(r[i - 1] * (ir[i] * ir[i] + ii[i] * ii[i])) INTO loss_kw
		FROM generate_series(2, 33) i;
END $$;
