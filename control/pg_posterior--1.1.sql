-- pg_posterior 1.1: complain if this script is sourced in psql rather than by CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_posterior" to load this file. \quit

\ir parts/schema.sql
DO $$
DECLARE
	first text;
BEGIN
	SELECT pg_describe_object(classid, objid, objsubid) INTO first FROM pg_depend
	WHERE refclassid = 'pg_namespace'::regclass::oid AND refobjid = 'posterior'::regnamespace::oid
		AND classid NOT IN ('pg_extension'::regclass::oid, 'pg_default_acl'::regclass::oid)
	ORDER BY 1 LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'schema "posterior" is not empty'
			USING ERRCODE = 'object_not_in_prerequisite_state',
			DETAIL = format('There is %s.', first),
			HINT = 'Drop or move what is in the schema.';
	END IF;
END $$;

-- ---- distribution: type, input and output, accessors --------------------------------------------

CREATE TYPE posterior.distribution;

CREATE FUNCTION posterior.distribution_in(cstring) RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_distribution_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.distribution_out(posterior.distribution) RETURNS cstring
	AS 'MODULE_PATHNAME', 'posterior_distribution_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.distribution_recv(internal) RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_distribution_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.distribution_send(posterior.distribution) RETURNS bytea
	AS 'MODULE_PATHNAME', 'posterior_distribution_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE posterior.distribution (
	INPUT = posterior.distribution_in,
	OUTPUT = posterior.distribution_out,
	RECEIVE = posterior.distribution_recv,
	SEND = posterior.distribution_send,
	INTERNALLENGTH = VARIABLE,
	ALIGNMENT = double,
	STORAGE = extended
);
COMMENT ON TYPE posterior.distribution
	IS 'a predictive distribution: normal, mixture of normals, bars or categorical';

CREATE TYPE posterior.float8range AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = float8mi);
COMMENT ON TYPE posterior.float8range
	IS 'a range of double precision numbers, as posterior.bounds returns it';

CREATE FUNCTION posterior.normal(mean float8, sd float8) RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_normal' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION posterior.normal(mean float8, sd float8) IS 'normal distribution';
CREATE FUNCTION posterior.mixture(weights float8[], means float8[], sds float8[])
	RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_mixture' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION posterior.mixture(weights float8[], means float8[], sds float8[])
	IS 'mixture of normal distributions';
CREATE FUNCTION posterior.bars(masses float8[], borders float8[],
		half_normal_tails boolean DEFAULT false) RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_bars' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION posterior.bars(masses float8[], borders float8[], half_normal_tails boolean)
	IS 'piecewise uniform distribution, optionally with half-normal first and last bucket';
CREATE FUNCTION posterior.categorical(labels text[], probabilities float8[])
	RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_categorical' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION posterior.categorical(labels text[], probabilities float8[])
	IS 'distribution over labels';
CREATE FUNCTION posterior.kind(d posterior.distribution) RETURNS text
	AS 'MODULE_PATHNAME', 'posterior_kind' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION posterior.kind(d posterior.distribution)
	IS 'normal, mixture, bars, bars_half_normal or categorical';
CREATE FUNCTION posterior.mean(d posterior.distribution) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_mean' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
COMMENT ON FUNCTION posterior.mean(d posterior.distribution) IS 'mean';
CREATE FUNCTION posterior.stddev(d posterior.distribution) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_stddev' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
COMMENT ON FUNCTION posterior.stddev(d posterior.distribution) IS 'standard deviation';
CREATE FUNCTION posterior.variance(d posterior.distribution) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_variance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
COMMENT ON FUNCTION posterior.variance(d posterior.distribution) IS 'variance';
CREATE FUNCTION posterior.median(d posterior.distribution) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_median' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50;
COMMENT ON FUNCTION posterior.median(d posterior.distribution) IS 'median';
CREATE FUNCTION posterior.mode(d posterior.distribution) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_mode' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50;
COMMENT ON FUNCTION posterior.mode(d posterior.distribution) IS 'point of highest density';
CREATE FUNCTION posterior.quantile(d posterior.distribution, p float8) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_quantile' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50;
COMMENT ON FUNCTION posterior.quantile(d posterior.distribution, p float8)
	IS 'quantile at probability p';
CREATE FUNCTION posterior.quantile(d posterior.distribution, p float8[]) RETURNS float8[]
	AS 'MODULE_PATHNAME', 'posterior_quantiles' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION posterior.quantile(d posterior.distribution, p float8[])
	IS 'quantiles at several probabilities';
CREATE FUNCTION posterior.bounds(d posterior.distribution, level float8)
	RETURNS posterior.float8range
	AS 'MODULE_PATHNAME', 'posterior_bounds' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION posterior.bounds(d posterior.distribution, level float8)
	IS 'central interval that holds the given probability, so that y <@ posterior.bounds(d, 0.9)';
CREATE FUNCTION posterior.pdf(d posterior.distribution, y float8) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_pdf' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION posterior.pdf(d posterior.distribution, y float8) IS 'density at y';
CREATE FUNCTION posterior.log_pdf(d posterior.distribution, y float8) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_log_pdf' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION posterior.log_pdf(d posterior.distribution, y float8)
	IS 'natural logarithm of the density at y';
CREATE FUNCTION posterior.cdf(d posterior.distribution, y float8) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_cdf' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION posterior.cdf(d posterior.distribution, y float8)
	IS 'probability of a value of at most y';
CREATE FUNCTION posterior.crps(d posterior.distribution, y float8) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_crps' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50;
COMMENT ON FUNCTION posterior.crps(d posterior.distribution, y float8)
	IS 'continuous ranked probability score of the outcome y, lower is better';
CREATE FUNCTION posterior.entropy(d posterior.distribution) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_entropy' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION posterior.entropy(d posterior.distribution)
	IS 'entropy in nats, differential for distributions over numbers';
CREATE FUNCTION posterior.probability(d posterior.distribution, label text) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_probability' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION posterior.probability(d posterior.distribution, label text)
	IS 'probability of a label; NULL for what is no label of the distribution';
\ir parts/label_probability.sql
CREATE FUNCTION posterior.most_probable(d posterior.distribution) RETURNS text
	AS 'MODULE_PATHNAME', 'posterior_most_probable' LANGUAGE C IMMUTABLE STRICT
		PARALLEL SAFE COST 5;
COMMENT ON FUNCTION posterior.most_probable(d posterior.distribution)
	IS 'label of highest probability';
CREATE FUNCTION posterior.probabilities(d posterior.distribution, OUT label text,
		OUT probability float8) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_probabilities' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
		COST 10 ROWS 4;
COMMENT ON FUNCTION posterior.probabilities(d posterior.distribution)
	IS 'labels and their probabilities, in the order of the classes';
CREATE FUNCTION posterior.draw(d posterior.distribution, n integer, seed bigint DEFAULT 0)
	RETURNS SETOF float8
	AS 'MODULE_PATHNAME', 'posterior_draw' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION posterior.draw(d posterior.distribution, n integer, seed bigint)
	IS 'independent draws; the same seed gives the same draws';

-- compared by bytes, for GROUP BY, DISTINCT, sorts and joins
CREATE FUNCTION posterior.distribution_eq(posterior.distribution, posterior.distribution)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'posterior_bytes_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.distribution_ne(posterior.distribution, posterior.distribution)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'posterior_bytes_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.distribution_lt(posterior.distribution, posterior.distribution)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'posterior_bytes_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.distribution_le(posterior.distribution, posterior.distribution)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'posterior_bytes_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.distribution_gt(posterior.distribution, posterior.distribution)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'posterior_bytes_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.distribution_ge(posterior.distribution, posterior.distribution)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'posterior_bytes_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.distribution_cmp(posterior.distribution, posterior.distribution)
	RETURNS integer
	AS 'MODULE_PATHNAME', 'posterior_bytes_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.distribution_hash(posterior.distribution) RETURNS integer
	AS 'MODULE_PATHNAME', 'posterior_bytes_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR posterior.= (
	LEFTARG = posterior.distribution, RIGHTARG = posterior.distribution,
		FUNCTION = posterior.distribution_eq,
	COMMUTATOR = OPERATOR(posterior.=), NEGATOR = OPERATOR(posterior.<>), RESTRICT = eqsel,
		JOIN = eqjoinsel, HASHES, MERGES
);
CREATE OPERATOR posterior.<> (
	LEFTARG = posterior.distribution, RIGHTARG = posterior.distribution,
		FUNCTION = posterior.distribution_ne,
	COMMUTATOR = OPERATOR(posterior.<>), NEGATOR = OPERATOR(posterior.=), RESTRICT = neqsel,
		JOIN = neqjoinsel
);
CREATE OPERATOR posterior.< (
	LEFTARG = posterior.distribution, RIGHTARG = posterior.distribution,
		FUNCTION = posterior.distribution_lt,
	COMMUTATOR = OPERATOR(posterior.>), NEGATOR = OPERATOR(posterior.>=), RESTRICT = scalarltsel,
		JOIN = scalarltjoinsel
);
CREATE OPERATOR posterior.<= (
	LEFTARG = posterior.distribution, RIGHTARG = posterior.distribution,
		FUNCTION = posterior.distribution_le,
	COMMUTATOR = OPERATOR(posterior.>=), NEGATOR = OPERATOR(posterior.>), RESTRICT = scalarlesel,
		JOIN = scalarlejoinsel
);
CREATE OPERATOR posterior.> (
	LEFTARG = posterior.distribution, RIGHTARG = posterior.distribution,
		FUNCTION = posterior.distribution_gt,
	COMMUTATOR = OPERATOR(posterior.<), NEGATOR = OPERATOR(posterior.<=), RESTRICT = scalargtsel,
		JOIN = scalargtjoinsel
);
CREATE OPERATOR posterior.>= (
	LEFTARG = posterior.distribution, RIGHTARG = posterior.distribution,
		FUNCTION = posterior.distribution_ge,
	COMMUTATOR = OPERATOR(posterior.<=), NEGATOR = OPERATOR(posterior.<), RESTRICT = scalargesel,
		JOIN = scalargejoinsel
);
CREATE OPERATOR CLASS posterior.distribution_hash_ops DEFAULT FOR TYPE posterior.distribution
	USING hash AS
	OPERATOR 1 posterior.= (posterior.distribution, posterior.distribution),
	FUNCTION 1 posterior.distribution_hash(posterior.distribution);
CREATE OPERATOR CLASS posterior.distribution_ops DEFAULT FOR TYPE posterior.distribution
	USING btree AS
	OPERATOR 1 posterior.<, OPERATOR 2 posterior.<=, OPERATOR 3 posterior.=,
		OPERATOR 4 posterior.>=, OPERATOR 5 posterior.>,
	FUNCTION 1 posterior.distribution_cmp(posterior.distribution, posterior.distribution);

-- ---- models -------------------------------------------------------------------------------------

CREATE TABLE posterior.model_file (
	name text PRIMARY KEY,
	version uuid NOT NULL UNIQUE DEFAULT pg_catalog.gen_random_uuid(),
	file bytea NOT NULL,
	bundled boolean NOT NULL DEFAULT false,
	loaded_by name NOT NULL DEFAULT CURRENT_USER,
	loaded_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
	architecture text NOT NULL,
	context text NOT NULL,
	head text NOT NULL,
	description text NOT NULL,
	features integer,
	max_features integer NOT NULL,
	min_rows integer NOT NULL,
	buffer integer,
	takes_missing boolean NOT NULL,
	takes_categories boolean NOT NULL,
	parameters bigint NOT NULL,
	classes integer
);
ALTER TABLE posterior.model_file ALTER COLUMN file SET STORAGE EXTERNAL;
COMMENT ON TABLE posterior.model_file
	IS 'model files; use posterior.load_model, posterior.drop_model and the view posterior.models';
SELECT pg_catalog.pg_extension_config_dump('posterior.model_file', 'WHERE NOT bundled');
-- a prediction reads the model with the rights of its user
GRANT SELECT ON posterior.model_file TO PUBLIC;
GRANT USAGE ON SCHEMA posterior TO PUBLIC;

CREATE VIEW posterior.models AS
	SELECT name, description, architecture, context, head, classes, features, max_features,
		min_rows, buffer, takes_missing, takes_categories,
		parameters, pg_catalog.octet_length(file) AS bytes, bundled, loaded_by, loaded_at
	FROM posterior.model_file;
COMMENT ON VIEW posterior.models
	IS 'the models of this database: what each takes and how it reads a context';
GRANT SELECT ON posterior.models TO PUBLIC;

CREATE FUNCTION posterior.load_model(name text, path text) RETURNS void
	AS 'MODULE_PATHNAME', 'posterior_load_model_path' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION posterior.load_model(text, text)
	IS 'load a model from a file of the server; needs EXECUTE, INSERT on posterior.model_file and '
		'pg_read_server_files';
REVOKE EXECUTE ON FUNCTION posterior.load_model(text, text) FROM PUBLIC;
CREATE FUNCTION posterior.load_model(name text, file bytea) RETURNS void
	AS 'MODULE_PATHNAME', 'posterior_load_model_bytes' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION posterior.load_model(text, bytea)
	IS 'load a model from the bytes of its file; needs EXECUTE and INSERT on posterior.model_file';
REVOKE EXECUTE ON FUNCTION posterior.load_model(text, bytea) FROM PUBLIC;
CREATE FUNCTION posterior.drop_model(name text) RETURNS void
	AS 'MODULE_PATHNAME', 'posterior_drop_model' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION posterior.drop_model(text)
	IS 'forget a model; needs EXECUTE and DELETE on posterior.model_file';
REVOKE EXECUTE ON FUNCTION posterior.drop_model(text) FROM PUBLIC;

-- ---- context: type and aggregate ----------------------------------------------------------------

CREATE TYPE posterior.context;

CREATE FUNCTION posterior.context_in(cstring) RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_context_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.context_out(posterior.context) RETURNS cstring
	AS 'MODULE_PATHNAME', 'posterior_context_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.context_recv(internal) RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_context_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.context_send(posterior.context) RETURNS bytea
	AS 'MODULE_PATHNAME', 'posterior_context_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE posterior.context (
	INPUT = posterior.context_in,
	OUTPUT = posterior.context_out,
	RECEIVE = posterior.context_recv,
	SEND = posterior.context_send,
	INTERNALLENGTH = VARIABLE,
	ALIGNMENT = double,
	STORAGE = extended
);
COMMENT ON TYPE posterior.context
	IS 'rows with a target and features, as the context of predictions';

-- compared by bytes, for GROUP BY, DISTINCT, sorts and joins
CREATE FUNCTION posterior.context_eq(posterior.context, posterior.context) RETURNS boolean
	AS 'MODULE_PATHNAME', 'posterior_bytes_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.context_ne(posterior.context, posterior.context) RETURNS boolean
	AS 'MODULE_PATHNAME', 'posterior_bytes_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.context_lt(posterior.context, posterior.context) RETURNS boolean
	AS 'MODULE_PATHNAME', 'posterior_bytes_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.context_le(posterior.context, posterior.context) RETURNS boolean
	AS 'MODULE_PATHNAME', 'posterior_bytes_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.context_gt(posterior.context, posterior.context) RETURNS boolean
	AS 'MODULE_PATHNAME', 'posterior_bytes_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.context_ge(posterior.context, posterior.context) RETURNS boolean
	AS 'MODULE_PATHNAME', 'posterior_bytes_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.context_cmp(posterior.context, posterior.context) RETURNS integer
	AS 'MODULE_PATHNAME', 'posterior_bytes_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.context_hash(posterior.context) RETURNS integer
	AS 'MODULE_PATHNAME', 'posterior_bytes_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR posterior.= (
	LEFTARG = posterior.context, RIGHTARG = posterior.context, FUNCTION = posterior.context_eq,
	COMMUTATOR = OPERATOR(posterior.=), NEGATOR = OPERATOR(posterior.<>), RESTRICT = eqsel,
		JOIN = eqjoinsel, HASHES, MERGES
);
CREATE OPERATOR posterior.<> (
	LEFTARG = posterior.context, RIGHTARG = posterior.context, FUNCTION = posterior.context_ne,
	COMMUTATOR = OPERATOR(posterior.<>), NEGATOR = OPERATOR(posterior.=), RESTRICT = neqsel,
		JOIN = neqjoinsel
);
CREATE OPERATOR posterior.< (
	LEFTARG = posterior.context, RIGHTARG = posterior.context, FUNCTION = posterior.context_lt,
	COMMUTATOR = OPERATOR(posterior.>), NEGATOR = OPERATOR(posterior.>=), RESTRICT = scalarltsel,
		JOIN = scalarltjoinsel
);
CREATE OPERATOR posterior.<= (
	LEFTARG = posterior.context, RIGHTARG = posterior.context, FUNCTION = posterior.context_le,
	COMMUTATOR = OPERATOR(posterior.>=), NEGATOR = OPERATOR(posterior.>), RESTRICT = scalarlesel,
		JOIN = scalarlejoinsel
);
CREATE OPERATOR posterior.> (
	LEFTARG = posterior.context, RIGHTARG = posterior.context, FUNCTION = posterior.context_gt,
	COMMUTATOR = OPERATOR(posterior.<), NEGATOR = OPERATOR(posterior.<=), RESTRICT = scalargtsel,
		JOIN = scalargtjoinsel
);
CREATE OPERATOR posterior.>= (
	LEFTARG = posterior.context, RIGHTARG = posterior.context, FUNCTION = posterior.context_ge,
	COMMUTATOR = OPERATOR(posterior.<=), NEGATOR = OPERATOR(posterior.<), RESTRICT = scalargesel,
		JOIN = scalargejoinsel
);
CREATE OPERATOR CLASS posterior.context_hash_ops DEFAULT FOR TYPE posterior.context USING hash AS
	OPERATOR 1 posterior.= (posterior.context, posterior.context),
	FUNCTION 1 posterior.context_hash(posterior.context);
CREATE OPERATOR CLASS posterior.context_ops DEFAULT FOR TYPE posterior.context USING btree AS
	OPERATOR 1 posterior.<, OPERATOR 2 posterior.<=, OPERATOR 3 posterior.=,
		OPERATOR 4 posterior.>=, OPERATOR 5 posterior.>,
	FUNCTION 1 posterior.context_cmp(posterior.context, posterior.context);

CREATE FUNCTION posterior.rows(context posterior.context) RETURNS bigint
	AS 'MODULE_PATHNAME', 'posterior_context_rows' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION posterior.rows(posterior.context) IS 'number of rows of a context';
CREATE FUNCTION posterior.features(context posterior.context) RETURNS text[]
	AS 'MODULE_PATHNAME', 'posterior_context_features' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION posterior.features(posterior.context)
	IS 'kind of each feature column of a context';

CREATE FUNCTION posterior.rows_accum(internal, float8, VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_rows_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION posterior.rows_combine(internal, internal) RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_rows_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION posterior.rows_serialize(internal) RETURNS bytea
	AS 'MODULE_PATHNAME', 'posterior_rows_serialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.rows_deserialize(bytea, internal) RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_rows_deserialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.context_final(internal) RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_context_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE AGGREGATE posterior.context(y float8, VARIADIC x "any") (
	SFUNC = posterior.rows_accum,
	STYPE = internal,
	FINALFUNC = posterior.context_final,
	COMBINEFUNC = posterior.rows_combine,
	SERIALFUNC = posterior.rows_serialize,
	DESERIALFUNC = posterior.rows_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.context(float8, VARIADIC "any")
	IS 'rows as a context: target first, then features; rows whose target is NULL are left out';

CREATE FUNCTION posterior.labels(context posterior.context) RETURNS text[]
	AS 'MODULE_PATHNAME', 'posterior_context_label_array' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION posterior.labels(posterior.context)
	IS 'labels of a context in the order of its classes, NULL where its targets are numbers';
CREATE FUNCTION posterior.class_rows_accum(internal, "any", VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_class_rows_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE posterior.class_context(label "any", VARIADIC x "any") (
	SFUNC = posterior.class_rows_accum,
	STYPE = internal,
	FINALFUNC = posterior.context_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.class_context("any", VARIADIC "any")
	IS 'rows as a context of labels: label first, then features; rows whose label is NULL are left '
		'out';

-- ---- predict, sample, log_density, log_evidence, regress ----------------------------------------

CREATE FUNCTION posterior.predict(context posterior.context, VARIADIC x "any")
	RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_predict' LANGUAGE C STABLE PARALLEL SAFE COST 10000;
COMMENT ON FUNCTION posterior.predict(posterior.context, VARIADIC "any")
	IS 'predictive distribution of the target of a row with these features, which may be one jsonb '
		'array';

CREATE FUNCTION posterior.predict_rows(context posterior.context, rows anyarray, OUT ord integer,
		OUT prediction posterior.distribution)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_predict_rows' LANGUAGE C STABLE STRICT PARALLEL SAFE
		COST 100000 ROWS 100;
COMMENT ON FUNCTION posterior.predict_rows(posterior.context, anyarray)
	IS 'predictive distributions for an array of rows, each as if asked alone';

CREATE FUNCTION posterior.predict_summary(context posterior.context, rows anyarray,
		levels float8[] DEFAULT '{}', observed float8[] DEFAULT NULL,
		OUT ord integer, OUT mean float8, OUT stddev float8, OUT quantiles float8[],
			OUT log_density float8)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_predict_summary' LANGUAGE C STABLE PARALLEL SAFE
		COST 100000 ROWS 100;
COMMENT ON FUNCTION posterior.predict_summary(posterior.context, anyarray, float8[], float8[])
	IS 'of the predictions for an array of rows: mean, standard deviation, quantiles, and log '
		'density of what was observed';

CREATE FUNCTION posterior.sample(context posterior.context, rows anyarray, draws integer DEFAULT 1,
		seed bigint DEFAULT 0,
		OUT draw integer, OUT ord integer, OUT y float8)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_sample' LANGUAGE C STABLE STRICT PARALLEL SAFE
		COST 1000000 ROWS 1000;
COMMENT ON FUNCTION posterior.sample(posterior.context, anyarray, integer, bigint)
	IS 'joint draws of the targets of several rows; rows of one draw belong together';

CREATE FUNCTION posterior.sample_labels(context posterior.context, rows anyarray,
		draws integer DEFAULT 1, seed bigint DEFAULT 0,
		OUT draw integer, OUT ord integer, OUT label text)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_sample_labels' LANGUAGE C STABLE STRICT PARALLEL SAFE
		COST 1000000 ROWS 1000;
COMMENT ON FUNCTION posterior.sample_labels(posterior.context, anyarray, integer, bigint)
	IS 'joint draws of the labels of several rows; rows of one draw belong together';

CREATE FUNCTION posterior.density_accum(internal, posterior.context, float8, VARIADIC "any")
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION posterior.density_accum(internal, posterior.context, text, VARIADIC "any")
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION posterior.density_averaged_accum(internal, posterior.context, integer, bigint, text,
		VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_averaged_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION posterior.density_averaged_accum(internal, posterior.context, integer, bigint,
		float8, VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_averaged_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION posterior.density_final(internal) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_density_final' LANGUAGE C STABLE PARALLEL SAFE COST 100000;
CREATE FUNCTION posterior.evidence_final(internal) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_evidence_final' LANGUAGE C STABLE PARALLEL SAFE COST 100000;

CREATE AGGREGATE posterior.log_density(context posterior.context, y float8, VARIADIC x "any") (
	SFUNC = posterior.density_accum,
	STYPE = internal,
	FINALFUNC = posterior.density_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.log_density(posterior.context, float8, VARIADIC "any")
	IS 'joint log predictive density of the rows of a group, by the chain rule in their ORDER BY';

CREATE AGGREGATE posterior.log_density(context posterior.context, label text, VARIADIC x "any") (
	SFUNC = posterior.density_accum,
	STYPE = internal,
	FINALFUNC = posterior.density_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.log_density(posterior.context, text, VARIADIC "any")
	IS 'joint log probability of the labels of a group''s rows, by the chain rule in their '
		'ORDER BY';

CREATE AGGREGATE posterior.log_density_averaged(context posterior.context, orders integer,
		seed bigint, label text, VARIADIC x "any") (
	SFUNC = posterior.density_averaged_accum,
	STYPE = internal,
	FINALFUNC = posterior.density_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.log_density_averaged(posterior.context, integer, bigint, text,
		VARIADIC "any") IS 'logarithm of the joint probability of labels averaged over random '
			'orders of the rows';

CREATE AGGREGATE posterior.log_density_averaged(context posterior.context, orders integer,
		seed bigint, y float8, VARIADIC x "any") (
	SFUNC = posterior.density_averaged_accum,
	STYPE = internal,
	FINALFUNC = posterior.density_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.log_density_averaged(posterior.context, integer, bigint, float8,
		VARIADIC "any") IS 'logarithm of the joint predictive density averaged over random orders '
			'of the rows';

CREATE AGGREGATE posterior.log_evidence(y float8, VARIADIC x "any") (
	SFUNC = posterior.rows_accum,
	STYPE = internal,
	FINALFUNC = posterior.evidence_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.log_evidence(float8, VARIADIC "any")
	IS 'log marginal likelihood of the rows in their ORDER BY, conditional on the first min_rows '
		'rows of the model';

CREATE FUNCTION posterior.class_rows_accum(internal, text, VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_class_rows_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE posterior.log_evidence(label text, VARIADIC x "any") (
	SFUNC = posterior.class_rows_accum,
	STYPE = internal,
	FINALFUNC = posterior.evidence_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.log_evidence(text, VARIADIC "any")
	IS 'log marginal likelihood of labels in the ORDER BY of their rows, conditional on the first '
		'min_rows rows of the model';

CREATE FUNCTION posterior.regress(y float8, VARIADIC x "any") RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_regress' LANGUAGE C STABLE WINDOW PARALLEL SAFE COST 100000;
COMMENT ON FUNCTION posterior.regress(float8, VARIADIC "any")
	IS 'predictive distribution of the current row given the rows of its window frame';
CREATE FUNCTION posterior.classify(label "any", VARIADIC x "any") RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_classify' LANGUAGE C STABLE WINDOW PARALLEL SAFE COST 100000;
COMMENT ON FUNCTION posterior.classify("any", VARIADIC "any")
	IS 'probabilities of the labels of the current row given the rows of its window frame';

CREATE FUNCTION posterior.stat_cache(OUT entries bigint, OUT bytes bigint, OUT hits bigint,
		OUT misses bigint, OUT appends bigint,
		OUT evictions bigint, OUT private bigint, OUT shared boolean)
	RETURNS record
	AS 'MODULE_PATHNAME', 'posterior_stat_cache' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION posterior.stat_cache()
	IS 'the cache of encoded contexts: of the server when the library is preloaded, else of this '
		'session';

CREATE FUNCTION posterior.kernels(OUT name text, OUT used boolean) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_kernels_list' LANGUAGE C STABLE STRICT PARALLEL SAFE ROWS 4;
COMMENT ON FUNCTION posterior.kernels()
	IS 'the arithmetic that this machine has, the fastest first, and which of it is used';

-- ---- named contexts -----------------------------------------------------------------------------

CREATE TYPE posterior.regcolumn;
CREATE FUNCTION posterior.regcolumn_in(cstring) RETURNS posterior.regcolumn
	AS 'MODULE_PATHNAME', 'posterior_regcolumn_in' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.regcolumn_out(posterior.regcolumn) RETURNS cstring
	AS 'MODULE_PATHNAME', 'posterior_regcolumn_out' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE TYPE posterior.regcolumn (INPUT = posterior.regcolumn_in,
		OUTPUT = posterior.regcolumn_out, LIKE = int8);
COMMENT ON TYPE posterior.regcolumn IS 'a column, as regclass is a relation: it follows renames';
CREATE FUNCTION posterior.column_name(posterior.regcolumn) RETURNS text
	AS 'MODULE_PATHNAME', 'posterior_regcolumn_name' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION posterior.column_name(posterior.regcolumn)
	IS 'name of a column, NULL when it does not exist any more';

CREATE TYPE posterior.regrelation;
CREATE FUNCTION posterior.regrelation_in(cstring) RETURNS posterior.regrelation
	AS 'MODULE_PATHNAME', 'posterior_regrelation_in' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.regrelation_out(posterior.regrelation) RETURNS cstring
	AS 'MODULE_PATHNAME', 'posterior_regrelation_out' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE TYPE posterior.regrelation (INPUT = posterior.regrelation_in,
		OUTPUT = posterior.regrelation_out, LIKE = oid);
COMMENT ON TYPE posterior.regrelation
	IS 'a relation, as regclass is one, but a name that means none is read as none';
CREATE CAST (posterior.regrelation AS oid) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (posterior.regrelation AS regclass) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE CAST (regclass AS posterior.regrelation) WITHOUT FUNCTION AS ASSIGNMENT;

CREATE TYPE posterior.regowner;
CREATE FUNCTION posterior.regowner_in(cstring) RETURNS posterior.regowner
	AS 'MODULE_PATHNAME', 'posterior_regowner_in' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior.regowner_out(posterior.regowner) RETURNS cstring
	AS 'MODULE_PATHNAME', 'posterior_regowner_out' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE TYPE posterior.regowner (INPUT = posterior.regowner_in,
		OUTPUT = posterior.regowner_out, LIKE = oid);
COMMENT ON TYPE posterior.regowner
	IS 'a role, as regrole is one, but a name that means none is read as the current user';
CREATE CAST (posterior.regowner AS oid) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (posterior.regowner AS regrole) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE CAST (regrole AS posterior.regowner) WITHOUT FUNCTION AS ASSIGNMENT;

CREATE TYPE posterior.row_filter;
CREATE FUNCTION posterior.row_filter_in(cstring) RETURNS posterior.row_filter
	AS 'MODULE_PATHNAME', 'posterior_row_filter_in' LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION posterior.row_filter_out(posterior.row_filter) RETURNS cstring
	AS 'MODULE_PATHNAME', 'posterior_row_filter_out' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE TYPE posterior.row_filter (INPUT = posterior.row_filter_in,
		OUTPUT = posterior.row_filter_out, INTERNALLENGTH = VARIABLE, STORAGE = extended);
COMMENT ON TYPE posterior.row_filter IS 'a condition on the rows of a relation: it follows renames';
CREATE FUNCTION posterior.condition(posterior.row_filter) RETURNS text
	AS 'MODULE_PATHNAME', 'posterior_row_filter_condition' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION posterior.condition(posterior.row_filter)
	IS 'the condition of a filter with the column names of the moment';

CREATE TABLE posterior.context_definition (
	name text PRIMARY KEY,
	id uuid NOT NULL UNIQUE DEFAULT pg_catalog.gen_random_uuid(),
	version uuid NOT NULL DEFAULT pg_catalog.gen_random_uuid(),
	owner posterior.regowner NOT NULL,
	relation posterior.regrelation NOT NULL,
	target posterior.regcolumn NOT NULL,
	features posterior.regcolumn[] NOT NULL,
	order_by posterior.regcolumn[] NOT NULL,
	descending boolean[] NOT NULL,
	filter posterior.row_filter,
	model text NOT NULL,
	max_rows integer,
	maintain text NOT NULL CHECK (maintain IN ('trigger', 'read')),
	refreshed_rows bigint
);
COMMENT ON TABLE posterior.context_definition
	IS 'definitions of named contexts; use posterior.create_context, posterior.alter_context, '
		'posterior.drop_context and the view posterior.contexts';
SELECT pg_catalog.pg_extension_config_dump('posterior.context_definition', '');
\ir parts/definition_rights.sql
\ir parts/context_arguments.sql
CREATE FUNCTION posterior.drop_context(name text) RETURNS void
	AS 'MODULE_PATHNAME', 'posterior_drop_context' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION posterior.drop_context(text) IS 'forget a named context';
CREATE FUNCTION posterior.refresh_context(name text) RETURNS void
	AS 'MODULE_PATHNAME', 'posterior_refresh_context' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION posterior.refresh_context(text)
	IS 'have a named context encoded anew at its next use, all rows that are there now as its '
		'prefix';
CREATE FUNCTION posterior.warm_context(name text) RETURNS bigint
	AS 'MODULE_PATHNAME', 'posterior_warm_context' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION posterior.warm_context(text)
	IS 'encode a named context now; the number of its rows';

CREATE FUNCTION posterior.note_statement() RETURNS trigger
	AS 'MODULE_PATHNAME', 'posterior_note_statement' LANGUAGE C;
COMMENT ON FUNCTION posterior.note_statement()
	IS 'trigger of tables with named contexts: notes that this transaction writes the table';
CREATE FUNCTION posterior.note_insert() RETURNS trigger
	AS 'MODULE_PATHNAME', 'posterior_note_insert' LANGUAGE C;
COMMENT ON FUNCTION posterior.note_insert()
	IS 'trigger of tables with named contexts: notes where a new row lies';
CREATE FUNCTION posterior.note_change() RETURNS trigger
	AS 'MODULE_PATHNAME', 'posterior_note_change' LANGUAGE C;
COMMENT ON FUNCTION posterior.note_change()
	IS 'trigger of tables with named contexts, for replication: notes that this transaction writes '
		'the table';
CREATE FUNCTION posterior.dropped() RETURNS event_trigger
	AS 'MODULE_PATHNAME', 'posterior_dropped' LANGUAGE C;
COMMENT ON FUNCTION posterior.dropped() IS 'event trigger: named contexts go with their relation';
CREATE EVENT TRIGGER posterior_dropped ON sql_drop EXECUTE FUNCTION posterior.dropped();
-- also in sessions that replicate
ALTER EVENT TRIGGER posterior_dropped ENABLE ALWAYS;

-- An array is an element, too, and both functions would be as good for one, were the name's type
-- the same. A literal is rather text than name, so an array is taken for an array.
CREATE FUNCTION posterior.predict(context name, "row" anyelement) RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_predict_named' LANGUAGE C STABLE STRICT
		PARALLEL RESTRICTED COST 10000;
COMMENT ON FUNCTION posterior.predict(name, anyelement)
	IS 'predictive distribution of the target of a row, which may be a jsonb, given a named '
		'context; columns are matched by name';
CREATE FUNCTION posterior.predict(context text, rows anyarray, OUT ord integer,
		OUT prediction posterior.distribution)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_predict_rows_named' LANGUAGE C STABLE STRICT
		PARALLEL RESTRICTED COST 100000 ROWS 100;
COMMENT ON FUNCTION posterior.predict(text, anyarray)
	IS 'predictive distributions for an array of rows, given a named context: predict_rows by '
		'another name';
CREATE FUNCTION posterior.predict_rows(context text, rows anyarray, OUT ord integer,
		OUT prediction posterior.distribution)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_predict_rows_named' LANGUAGE C STABLE STRICT
		PARALLEL RESTRICTED COST 100000 ROWS 100;
COMMENT ON FUNCTION posterior.predict_rows(text, anyarray)
	IS 'predictive distributions for an array of rows, given a named context';
CREATE FUNCTION posterior.predict_summary(context text, rows anyarray, levels float8[] DEFAULT '{}',
		observed float8[] DEFAULT NULL,
		OUT ord integer, OUT mean float8, OUT stddev float8, OUT quantiles float8[],
			OUT log_density float8)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_predict_summary_named' LANGUAGE C STABLE PARALLEL RESTRICTED
		COST 100000 ROWS 100;
COMMENT ON FUNCTION posterior.predict_summary(text, anyarray, float8[], float8[])
	IS 'of the predictions for an array of rows given a named context: mean, standard deviation, '
		'quantiles, and log density of what was observed';
CREATE FUNCTION posterior.sample(context text, rows anyarray, draws integer DEFAULT 1,
		seed bigint DEFAULT 0,
		OUT draw integer, OUT ord integer, OUT y float8)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_sample_named' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED
		COST 1000000 ROWS 1000;
COMMENT ON FUNCTION posterior.sample(text, anyarray, integer, bigint)
	IS 'joint draws of the targets of several rows, given a named context';
CREATE FUNCTION posterior.sample_labels(context text, rows anyarray, draws integer DEFAULT 1,
		seed bigint DEFAULT 0,
		OUT draw integer, OUT ord integer, OUT label text)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_sample_labels_named' LANGUAGE C STABLE STRICT
		PARALLEL RESTRICTED COST 1000000 ROWS 1000;
COMMENT ON FUNCTION posterior.sample_labels(text, anyarray, integer, bigint)
	IS 'joint draws of the labels of several rows, given a named context';
CREATE FUNCTION posterior.density_named_accum(internal, text, text, anyelement) RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_named_accum' LANGUAGE C STABLE PARALLEL RESTRICTED;
CREATE FUNCTION posterior.density_averaged_named_accum(internal, text, integer, bigint, text,
		anyelement) RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_averaged_named_accum' LANGUAGE C STABLE
		PARALLEL RESTRICTED;
CREATE FUNCTION posterior.density_named_accum(internal, text, float8, anyelement) RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_named_accum' LANGUAGE C STABLE PARALLEL RESTRICTED;
CREATE FUNCTION posterior.density_averaged_named_accum(internal, text, integer, bigint, float8,
		anyelement) RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_averaged_named_accum' LANGUAGE C STABLE
		PARALLEL RESTRICTED;
CREATE AGGREGATE posterior.log_density(context text, y float8, "row" anyelement) (
	SFUNC = posterior.density_named_accum,
	STYPE = internal,
	FINALFUNC = posterior.density_final,
	PARALLEL = RESTRICTED
);
COMMENT ON AGGREGATE posterior.log_density(text, float8, anyelement)
	IS 'joint log predictive density of the rows of a group, given a named context';
CREATE AGGREGATE posterior.log_density(context text, label text, "row" anyelement) (
	SFUNC = posterior.density_named_accum,
	STYPE = internal,
	FINALFUNC = posterior.density_final,
	PARALLEL = RESTRICTED
);
COMMENT ON AGGREGATE posterior.log_density(text, text, anyelement)
	IS 'joint log probability of the labels of a group''s rows, given a named context';
CREATE AGGREGATE posterior.log_density_averaged(context text, orders integer, seed bigint,
		label text, "row" anyelement) (
	SFUNC = posterior.density_averaged_named_accum,
	STYPE = internal,
	FINALFUNC = posterior.density_final,
	PARALLEL = RESTRICTED
);
COMMENT ON AGGREGATE posterior.log_density_averaged(text, integer, bigint, text, anyelement)
	IS 'logarithm of the joint probability of labels averaged over random orders of the rows, '
		'given a named context';
CREATE AGGREGATE posterior.log_density_averaged(context text, orders integer, seed bigint, y float8,
		"row" anyelement) (
	SFUNC = posterior.density_averaged_named_accum,
	STYPE = internal,
	FINALFUNC = posterior.density_final,
	PARALLEL = RESTRICTED
);
COMMENT ON AGGREGATE posterior.log_density_averaged(text, integer, bigint, float8, anyelement)
	IS 'logarithm of the joint predictive density averaged over random orders of the rows, given a '
		'named context';

CREATE FUNCTION posterior.progress(OUT pid integer, OUT context_id uuid, OUT phase text,
		OUT done bigint, OUT total bigint)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_progress_rows' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
		COST 100 ROWS 10;
COMMENT ON FUNCTION posterior.progress()
	IS 'what backends are reading, encoding and answering, as far as the user may see it; the '
		'view posterior.stat_progress shows it';

\ir parts/context_views.sql
GRANT SELECT ON posterior.contexts, posterior.stat_contexts, posterior.stat_progress TO PUBLIC;

CREATE FUNCTION posterior.stat_reset() RETURNS void
	AS 'MODULE_PATHNAME', 'posterior_stat_reset' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION posterior.stat_reset()
	IS 'set the counters of the cache and of this database''s named contexts to zero';
REVOKE EXECUTE ON FUNCTION posterior.stat_reset() FROM PUBLIC;

-- ---- the server for devices ---------------------------------------------------------------------

CREATE FUNCTION posterior.server_state(OUT state text, OUT pid integer, OUT started timestamptz,
		OUT starts bigint, OUT faults bigint,
		OUT fallbacks bigint, OUT last_end text, OUT clients bigint, OUT waiting bigint,
			OUT requests bigint, OUT batches bigint,
		OUT largest_batch bigint, OUT failures bigint, OUT cancelled bigint,
			OUT rows_received bigint, OUT builds bigint, OUT appends bigint,
		OUT evictions bigint, OUT models bigint, OUT encodings bigint, OUT memory_used bigint,
			OUT memory_limit bigint)
	RETURNS record
	AS 'MODULE_PATHNAME', 'posterior_server_state' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION posterior.server_state()
	IS 'the server for devices; the view posterior.stat_server shows it';
CREATE VIEW posterior.stat_server AS SELECT * FROM posterior.server_state();
COMMENT ON VIEW posterior.stat_server
	IS 'the server process for devices: its state, what it has answered, the memory it uses; '
		'counters are NULL while it does not answer';
GRANT SELECT ON posterior.stat_server TO PUBLIC;
CREATE FUNCTION posterior.server_device(OUT provider text, OUT name text, OUT version text,
		OUT "precision" text, OUT memory bigint,
		OUT memory_limit bigint, OUT memory_used bigint)
	RETURNS record
	AS 'MODULE_PATHNAME', 'posterior_server_device_info' LANGUAGE C VOLATILE STRICT
		PARALLEL RESTRICTED;
COMMENT ON FUNCTION posterior.server_device()
	IS 'the device of the server; the view posterior.devices shows it';
CREATE VIEW posterior.devices AS
	SELECT 'session' AS place, 'cpu' AS provider, 'the processor, in the session that asks' AS name,
		NULL::text AS version, 'fp32' AS "precision",
		NULL::bigint AS memory, NULL::bigint AS memory_limit, NULL::bigint AS memory_used
	UNION ALL
	SELECT 'server', provider, name, version, "precision", memory, memory_limit, memory_used
		FROM posterior.server_device() WHERE provider IS NOT NULL;
COMMENT ON VIEW posterior.devices
	IS 'what can compute predictions: the processor always, and the device of the server process '
		'when that is ready';
GRANT SELECT ON posterior.devices TO PUBLIC;

\ir parts/column_comments.sql

-- ---- bundled models -----------------------------------------------------------------------------

CREATE FUNCTION posterior.load_bundled_models() RETURNS void
	AS 'MODULE_PATHNAME', 'posterior_load_bundled_models' LANGUAGE C VOLATILE STRICT
		PARALLEL UNSAFE;
SELECT posterior.load_bundled_models();
DROP FUNCTION posterior.load_bundled_models();

\ir parts/decisions.sql
\ir parts/verb_common.sql
\ir parts/row_order.sql
\ir parts/model_behaviour.sql
\ir parts/label_context.sql
\ir parts/calendar.sql
\ir parts/series.sql
\ir parts/forecast.sql
\ir parts/evaluate.sql
\ir parts/answers.sql
\ir parts/plot.sql
\ir parts/quantiles.sql
\ir parts/joint.sql
\ir parts/context_estimators.sql
\ir parts/habits.sql
\ir parts/sums.sql
\ir parts/kept_sums.sql
\ir parts/replication.sql
\ir parts/targets.sql
\ir parts/costs.sql
\ir parts/internals.sql
