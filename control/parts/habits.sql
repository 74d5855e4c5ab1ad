-- ---- habits -------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION posterior.bounds(d posterior.distribution, level float8 DEFAULT 0.9)
	RETURNS posterior.float8range
	AS 'MODULE_PATHNAME', 'posterior_bounds' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;

CREATE FUNCTION posterior.to_json(d posterior.distribution) RETURNS json
	AS 'MODULE_PATHNAME', 'posterior_distribution_json' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
		COST 10;
COMMENT ON FUNCTION posterior.to_json(d posterior.distribution) IS
	'a distribution as a JSON object: its kind and its parameters';
CREATE FUNCTION posterior.to_jsonb(d posterior.distribution) RETURNS jsonb
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 20
	RETURN posterior.to_json(d)::pg_catalog.jsonb;
COMMENT ON FUNCTION posterior.to_jsonb(d posterior.distribution) IS 'the same as jsonb';
CREATE FUNCTION posterior.from_jsonb(object jsonb) RETURNS posterior.distribution
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 100 SET search_path = pg_catalog,
		pg_temp AS $$
DECLARE
	kind text := object->>'kind';
	-- the numbers of a key
	a float8[];
	b float8[];
	c float8[];
BEGIN
	IF jsonb_typeof(object) <> 'object' OR kind IS NULL
			OR kind NOT IN ('normal', 'mixture', 'bars', 'bars_half_normal', 'quantiles',
				'categorical') THEN
		RAISE EXCEPTION 'a distribution is a JSON object with a kind'
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('The kind is %s.', coalesce(quote_literal(kind), 'not there')),
				HINT =
					'Kinds are normal, mixture, bars, bars_half_normal, quantiles and categorical, '
					'as posterior.to_jsonb writes them.';
	ELSIF kind = 'normal' THEN
		RETURN posterior.normal((object->>'mean')::float8, (object->>'sd')::float8);
	END IF;
	a := ARRAY(SELECT v::float8 FROM jsonb_array_elements_text(object->CASE kind
		WHEN 'mixture' THEN 'weights' WHEN 'categorical' THEN 'probabilities'
		WHEN 'quantiles' THEN 'quantiles' ELSE 'masses' END) v);
	IF kind = 'quantiles' THEN
		RETURN posterior.from_quantiles(a, (object->>'lower_tail')::float8,
			(object->>'upper_tail')::float8);
	END IF;
	IF kind = 'categorical' THEN
		RETURN posterior.categorical(ARRAY(SELECT v
			FROM jsonb_array_elements_text(object->'labels') v), a);
	END IF;
	b := ARRAY(SELECT v::float8 FROM jsonb_array_elements_text(object->CASE kind
		WHEN 'mixture' THEN 'means' ELSE 'borders' END) v);
	IF kind <> 'mixture' THEN
		RETURN posterior.bars(a, b, kind = 'bars_half_normal');
	END IF;
	c := ARRAY(SELECT v::float8 FROM jsonb_array_elements_text(object->'sds') v);
	RETURN posterior.mixture(a, b, c);
END $$;
COMMENT ON FUNCTION posterior.from_jsonb(jsonb) IS 'the distribution of such an object';
CREATE CAST (posterior.distribution AS json) WITH FUNCTION
	posterior.to_json(posterior.distribution);
CREATE CAST (posterior.distribution AS jsonb) WITH FUNCTION
	posterior.to_jsonb(posterior.distribution);
CREATE CAST (jsonb AS posterior.distribution) WITH FUNCTION posterior.from_jsonb(jsonb);
