-- ---- what the verbs share -----------------------------------------------------------------------
-- Verbs read relations with the rights of the caller, under a search path of their own; names of
-- columns reach a statement by format's %I only, relations as regclass.

CREATE SCHEMA posterior_internal;
GRANT USAGE ON SCHEMA posterior_internal TO PUBLIC;
COMMENT ON SCHEMA posterior_internal IS 'parts of pg_posterior that are not called directly';

CREATE FUNCTION posterior_internal.check_column(relation regclass, name text,
	role text) RETURNS regtype
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	found regtype;
BEGIN
	IF relation IS NULL THEN
		RAISE EXCEPTION 'the relation must not be NULL' USING ERRCODE = 'null_value_not_allowed',
			HINT = 'Name a table or a view, as in ''public.sales''.';
	END IF;
	IF name IS NULL THEN
		RAISE EXCEPTION 'the name of a column is NULL' USING ERRCODE = 'null_value_not_allowed',
			DETAIL = format('It is that of the %s.', role),
				HINT = 'An array of columns is written as in ''{temperature,weekday}''.';
	END IF;
	SELECT a.atttypid INTO found FROM pg_attribute a
	WHERE a.attrelid = relation AND a.attname = name::name AND a.attnum > 0 AND NOT a.attisdropped;
	IF found IS NULL THEN
		RAISE EXCEPTION 'column "%" of relation % does not exist', name, relation
			USING ERRCODE = 'undefined_column', DETAIL = format('It is named as the %s.', role),
				HINT = (SELECT 'Its columns are ' || string_agg(format('%I', attname),
					', ' ORDER BY attnum)
					|| '. A column is given by its bare name, without quotes of its own.'
					FROM pg_attribute WHERE attrelid = relation AND attnum > 0
						AND NOT attisdropped);
	END IF;
	RETURN found;
END $$;
COMMENT ON FUNCTION posterior_internal.check_column(regclass, text,
	text) IS 'type of a column, or an error that lists the columns';

CREATE FUNCTION posterior_internal.base_type(type regtype) RETURNS regtype
	LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH RECURSIVE down (oid) AS (
		SELECT type::oid
		UNION ALL
		SELECT t.typbasetype FROM down d JOIN pg_type t ON t.oid = d.oid WHERE t.typtype = 'd')
	SELECT d.oid::regtype FROM down d JOIN pg_type t ON t.oid = d.oid WHERE t.typtype <> 'd'
$$;
COMMENT ON FUNCTION posterior_internal.base_type(regtype) IS 'type below its domains';

CREATE FUNCTION posterior_internal.is_number(type regtype) RETURNS boolean
	LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT posterior_internal.base_type(type) IN ('smallint'::regtype, 'integer', 'bigint', 'real',
		'double precision', 'numeric')
$$;
COMMENT ON FUNCTION posterior_internal.is_number(regtype) IS 'whether a type is one of numbers';

CREATE FUNCTION posterior_internal.is_feature(type regtype) RETURNS boolean
	LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT posterior_internal.is_number(type)
		OR posterior_internal.base_type(type) IN ('boolean'::regtype, 'text', 'varchar', 'bpchar',
		'"char"', 'name', 'date', 'timestamp', 'timestamptz', 'interval')
		OR EXISTS (SELECT FROM pg_type t
			WHERE t.oid = posterior_internal.base_type(type) AND t.typtype = 'e')
$$;
COMMENT ON FUNCTION posterior_internal.is_feature(regtype) IS 'whether a type can be a feature';

CREATE FUNCTION posterior_internal.has_cast(type regtype, other regtype) RETURNS boolean
	LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT EXISTS (SELECT FROM pg_cast WHERE castsource = type AND casttarget = other)
$$;
COMMENT ON FUNCTION posterior_internal.has_cast(regtype, regtype) IS
	'whether there is a cast from one type to the other';

CREATE FUNCTION posterior_internal.check_number(relation regclass, name text,
	role text) RETURNS void
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	type regtype := posterior_internal.check_column(relation, name, role);
	base regtype := posterior_internal.base_type(type);
	number text;
BEGIN
	IF NOT posterior_internal.is_number(type) THEN
		number := CASE
			WHEN base IN ('date'::regtype, 'time', 'timetz', 'timestamp', 'timestamptz', 'interval')
				THEN 'extract(epoch FROM %I) AS %1$I'
			WHEN base = 'boolean'::regtype THEN '%I::integer'
			WHEN (SELECT t.typcategory = 'S' FROM pg_type t WHERE t.oid = base)
				OR posterior_internal.has_cast(base, 'float8') THEN '%I::float8'
			WHEN posterior_internal.has_cast(base, 'numeric') THEN '%I::numeric'
			WHEN posterior_internal.is_number((SELECT t.typelem FROM pg_type t
				WHERE t.oid = base AND t.typcategory = 'A')::regtype) THEN '%I[1] AS %1$I' END;
		RAISE EXCEPTION 'column "%" is not a number', name
			USING ERRCODE = 'datatype_mismatch',
				DETAIL = format('It is the %s; its type is %s.', role, type),
				HINT = coalesce('Make a view that casts it, as in SELECT ' || format(number, name)
					|| ', and name the view instead.', 'Name a column of numbers.');
	END IF;
END $$;
COMMENT ON FUNCTION posterior_internal.check_number(regclass, text,
	text) IS 'an error unless a column holds numbers';

CREATE FUNCTION posterior_internal.refuse_features(relation regclass, n integer) RETURNS void
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION 'there are % features of relation %, and a verb takes 98', n, relation
		USING ERRCODE = 'too_many_arguments',
			HINT = 'Name those that matter, as in features => ''{temperature,weekday}'', or ask a '
			'named context, which takes any number.';
END $$;
COMMENT ON FUNCTION posterior_internal.refuse_features(regclass, integer) IS
	'the error of more features than a function takes';

CREATE FUNCTION posterior_internal.check_features(relation regclass, target text, features text[],
	excluded text[] DEFAULT '{}') RETURNS text[]
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	feature text;
	type regtype;
	found text[];
BEGIN
	PERFORM posterior_internal.check_column(relation, target, 'target');
	IF features IS NULL THEN
		SELECT array_agg(attname::text ORDER BY attnum) INTO found FROM pg_attribute
		WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped AND attname <> target
			AND attname <> ALL (excluded)
			AND posterior_internal.is_feature(atttypid);
		IF cardinality(found) > 98 THEN
			PERFORM posterior_internal.refuse_features(relation, cardinality(found));
		ELSIF found IS NULL THEN
			RAISE EXCEPTION 'relation % has no column that can be a feature', relation
				USING ERRCODE = 'undefined_column',
					HINT =
					'Features may be numbers, booleans, text, enums, dates, timestamps and '
					'intervals.';
		END IF;
		RETURN found;
	END IF;
	IF cardinality(features) > 98 THEN
		PERFORM posterior_internal.refuse_features(relation, cardinality(features));
	ELSIF cardinality(features) = 0 THEN
		RAISE EXCEPTION 'at least one feature is needed' USING ERRCODE = 'invalid_parameter_value',
			HINT = 'Leave out features to use all columns that can be one.';
	END IF;
	FOREACH feature IN ARRAY features LOOP
		type := posterior_internal.check_column(relation, feature, 'feature');
		IF feature = target THEN
			RAISE EXCEPTION 'column "%" is the target and cannot be a feature', feature
				USING ERRCODE = 'invalid_parameter_value',
					DETAIL = 'A prediction that reads its own target is a leak.',
					HINT = 'Leave it out of the features.';
		END IF;
		IF feature = ANY (excluded) THEN
			RAISE EXCEPTION 'column "%" cannot be a feature: it has another role here', feature
				USING ERRCODE = 'invalid_parameter_value',
					HINT = 'Leave it out of the features.';
		END IF;
		IF NOT posterior_internal.is_feature(type) THEN
			RAISE EXCEPTION 'column "%" cannot be a feature', feature
				USING ERRCODE = 'datatype_mismatch', DETAIL = format('Its type is %s.', type),
					HINT =
						'Features may be numbers, booleans, text, enums, dates, timestamps and '
						'intervals; cast it in a view.';
		END IF;
	END LOOP;
	IF (SELECT count(DISTINCT f) FROM unnest(features) f) < cardinality(features) THEN
		RAISE EXCEPTION 'a feature is given twice' USING ERRCODE = 'invalid_parameter_value',
			DETAIL = format('Features are %s.', features), HINT = 'Name each of them once.';
	END IF;
	RETURN features;
END $$;
COMMENT ON FUNCTION posterior_internal.check_features(regclass, text, text[],
	text[]) IS 'features as given, or all columns that can be one';

CREATE FUNCTION posterior_internal.check_level(level float8) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF level IS NULL OR NOT (level > 0 AND level < 1) THEN
		RAISE EXCEPTION 'level must be between 0 and 1'
			USING ERRCODE = 'numeric_value_out_of_range',
			DETAIL = format('It is %s.', coalesce(level::text, 'NULL')),
			HINT = 'level => 0.9 asks for bands that hold 90 % of the outcomes.';
	END IF;
END $$;
COMMENT ON FUNCTION posterior_internal.check_level(float8) IS
	'an error unless a level is a probability';

CREATE FUNCTION posterior_internal.check_count(value bigint, name text, lowest bigint,
	highest bigint, hint text DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF value IS NULL OR value < lowest OR value > highest THEN
		RAISE EXCEPTION '% must be between % and %', name, lowest, highest
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('It is %s.', coalesce(value::text, 'NULL')),
				HINT = coalesce(hint, 'Leave it out for the default.');
	END IF;
END $$;
COMMENT ON FUNCTION posterior_internal.check_count(bigint, text, bigint, bigint,
	text) IS 'an error unless a number is in its range';

CREATE FUNCTION posterior_internal.check_seed(seed bigint) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF seed IS NULL THEN
		RAISE EXCEPTION 'seed must not be NULL' USING ERRCODE = 'null_value_not_allowed',
			HINT = 'Leave it out for the default.';
	END IF;
END $$;
COMMENT ON FUNCTION posterior_internal.check_seed(bigint) IS 'an error unless a seed is there';

-- The setting lasts until the verb ends: verbs put back what they found; an error does by the end
-- of its (sub)transaction.
CREATE FUNCTION posterior_internal.use_model(model text, labels boolean DEFAULT false) RETURNS text
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	setting text := CASE WHEN labels THEN 'posterior.class_model' ELSE 'posterior.model' END;
	before text := coalesce(nullif(current_setting(setting, true), ''),
		CASE WHEN labels THEN 'tabular_class' ELSE 'tabular' END);
BEGIN
	IF model IS NOT NULL AND model <> before THEN
		IF NOT EXISTS (SELECT FROM posterior.models m WHERE m.name = model) THEN
			RAISE EXCEPTION 'model "%" does not exist', model USING ERRCODE = 'undefined_object',
				HINT = 'The view posterior.models lists the models.';
		END IF;
		PERFORM set_config(setting, model, true);
	END IF;
	RETURN before;
END $$;
COMMENT ON FUNCTION posterior_internal.use_model(text,
	boolean) IS 'set the model, tell the one before';

-- A key of a group as a jsonb object, and the same columns as a list.
CREATE FUNCTION posterior_internal.group_key(relation regclass, "by" text[],
	taken text[] DEFAULT '{}', alias text DEFAULT NULL) RETURNS text
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	name text;
	prefix text := CASE WHEN alias IS NULL THEN '' ELSE quote_ident(alias) || '.' END;
BEGIN
	IF coalesce(cardinality("by"), 0) = 0 THEN
		RETURN 'NULL::jsonb';
	END IF;
	FOREACH name IN ARRAY "by" LOOP
		PERFORM posterior_internal.check_column(relation, name, 'group');
		IF name = ANY (taken) THEN
			RAISE EXCEPTION 'column "%" cannot be a group: it has another role here', name
				USING ERRCODE = 'invalid_parameter_value',
					HINT =
					'by => names what tells one series or group from another, as in by => '
					'''{store}''.';
		END IF;
	END LOOP;
	-- a function takes a hundred arguments
	RETURN (SELECT format('(%s)', string_agg(part, ' || ' ORDER BY chunk))
		FROM (SELECT (i - 1) / 40 AS chunk, format('jsonb_build_object(%s)',
				string_agg(format('%L, %s%I', b, prefix, b), ', ' ORDER BY i)) AS part
			FROM unnest("by") WITH ORDINALITY u (b, i) GROUP BY (i - 1) / 40) c);
END $$;
COMMENT ON FUNCTION posterior_internal.group_key(regclass, text[], text[],
	text) IS 'expression of the key of a group';

CREATE FUNCTION posterior_internal.histogram(shares float8[]) RETURNS float8[]
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT array_agg((SELECT count(*) FROM unnest(shares) p
		WHERE least(floor(p * 10), 9) = i)::float8 / nullif(cardinality(shares), 0) ORDER BY i)
		FROM generate_series(0, 9) i
$$;
COMMENT ON FUNCTION posterior_internal.histogram(float8[]) IS
	'shares of tenths of the unit interval';
