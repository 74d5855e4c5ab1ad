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
CREATE FUNCTION posterior_internal.json_array(object jsonb, key text, type text) RETURNS jsonb
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	given jsonb := object->key;
	wrong jsonb;
BEGIN
	IF jsonb_typeof(given) = 'array' THEN
		SELECT v INTO wrong FROM jsonb_array_elements(given) v WHERE jsonb_typeof(v) <> type
			LIMIT 1;
		IF NOT FOUND THEN
			RETURN given;
		END IF;
	END IF;
	RAISE EXCEPTION 'a distribution of kind "%" has an array of %s, "%"', object->>'kind', type, key
		USING ERRCODE = 'invalid_parameter_value',
			DETAIL = CASE WHEN wrong IS NOT NULL THEN format('Among its values is %s.', wrong)
				WHEN given IS NULL THEN 'It is not there.' ELSE format('It is %s.', given) END,
			HINT = 'posterior.to_jsonb writes such objects.';
END $$;
COMMENT ON FUNCTION posterior_internal.json_array(jsonb, text, text) IS
	'an array of a distribution''s object, or an error';
CREATE FUNCTION posterior_internal.json_number(object jsonb, key text) RETURNS float8
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF jsonb_typeof(object->key) IS DISTINCT FROM 'number' THEN
		RAISE EXCEPTION 'a distribution of kind "%" has a number, "%"', object->>'kind', key
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = CASE WHEN object ? key THEN format('It is %s.', object->key)
					ELSE 'It is not there.' END,
				HINT = 'posterior.to_jsonb writes such objects.';
	END IF;
	RETURN (object->>key)::float8;
END $$;
COMMENT ON FUNCTION posterior_internal.json_number(jsonb, text) IS
	'a number of a distribution''s object, or an error';
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
		RETURN posterior.normal(posterior_internal.json_number(object, 'mean'),
			posterior_internal.json_number(object, 'sd'));
	END IF;
	a := ARRAY(SELECT v::float8
		FROM jsonb_array_elements_text(posterior_internal.json_array(object, CASE kind
			WHEN 'mixture' THEN 'weights' WHEN 'categorical' THEN 'probabilities'
			WHEN 'quantiles' THEN 'quantiles' ELSE 'masses' END, 'number')) v);
	IF kind = 'quantiles' THEN
		RETURN posterior.from_quantiles(a, posterior_internal.json_number(object, 'lower_tail'),
			posterior_internal.json_number(object, 'upper_tail'));
	END IF;
	IF kind = 'categorical' THEN
		RETURN posterior.categorical(ARRAY(SELECT v
			FROM jsonb_array_elements_text(posterior_internal.json_array(object, 'labels',
				'string')) v), a);
	END IF;
	b := ARRAY(SELECT v::float8
		FROM jsonb_array_elements_text(posterior_internal.json_array(object, CASE kind
			WHEN 'mixture' THEN 'means' ELSE 'borders' END, 'number')) v);
	IF kind <> 'mixture' THEN
		RETURN posterior.bars(a, b, kind = 'bars_half_normal');
	END IF;
	c := ARRAY(SELECT v::float8
		FROM jsonb_array_elements_text(posterior_internal.json_array(object, 'sds', 'number')) v);
	RETURN posterior.mixture(a, b, c);
END $$;
COMMENT ON FUNCTION posterior.from_jsonb(jsonb) IS 'the distribution of such an object';
CREATE CAST (posterior.distribution AS json) WITH FUNCTION
	posterior.to_json(posterior.distribution);
CREATE CAST (posterior.distribution AS jsonb) WITH FUNCTION
	posterior.to_jsonb(posterior.distribution);
CREATE CAST (jsonb AS posterior.distribution) WITH FUNCTION posterior.from_jsonb(jsonb);
