-- ---- several targets per row --------------------------------------------------------------------
-- An array of numbers is a target of so many. Answers for it are arrays, and what a function
-- returns follows from its name: hence predict_targets and sample_targets.

CREATE FUNCTION posterior.targets(context posterior.context) RETURNS integer
	AS 'MODULE_PATHNAME', 'posterior_context_target_count'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION posterior.targets(posterior.context)
	IS 'how many targets the rows of a context have';

CREATE FUNCTION posterior_internal.targets_accum(internal, float8[], VARIADIC "any")
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_target_rows_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION posterior_internal.targets_accum(internal, float8[], VARIADIC "any")
	IS 'gathers rows with several targets';
CREATE AGGREGATE posterior.context(y float8[], VARIADIC x "any") (
	SFUNC = posterior_internal.targets_accum,
	STYPE = internal,
	FINALFUNC = posterior.context_final,
	COMBINEFUNC = posterior.rows_combine,
	SERIALFUNC = posterior.rows_serialize,
	DESERIALFUNC = posterior.rows_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.context(float8[], VARIADIC "any")
	IS 'rows with several targets as a context; rows whose targets are all NULL are left out';

CREATE FUNCTION posterior.predict_targets(context posterior.context, VARIADIC x "any")
	RETURNS posterior.distribution[]
	AS 'MODULE_PATHNAME', 'posterior_predict_targets' LANGUAGE C STABLE PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION posterior.predict_targets(posterior.context, VARIADIC "any")
	IS 'predictive distributions of all targets of a row with these features, in their order';

CREATE FUNCTION posterior.sample_targets(context posterior.context, rows anyarray,
		draws integer DEFAULT 1, seed bigint DEFAULT 0,
		OUT draw integer, OUT ord integer, OUT y float8[])
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_sample_targets' LANGUAGE C STABLE STRICT PARALLEL SAFE
		COST 50000 ROWS 1000;
COMMENT ON FUNCTION posterior.sample_targets(posterior.context, anyarray, integer, bigint)
	IS 'joint draws of all targets of several rows; rows of one draw belong together';

CREATE FUNCTION posterior_internal.targets_density_accum(internal, posterior.context, float8[],
		VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION posterior_internal.targets_density_averaged_accum(internal, posterior.context,
		integer, bigint, float8[], VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_averaged_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION posterior_internal.targets_density_accum(internal, posterior.context, float8[],
		VARIADIC "any") IS 'gathers rows with several targets for their density';
COMMENT ON FUNCTION posterior_internal.targets_density_averaged_accum(internal, posterior.context,
		integer, bigint, float8[], VARIADIC "any")
	IS 'gathers rows with several targets for their density, averaged over orders';
CREATE AGGREGATE posterior.log_density(context posterior.context, y float8[], VARIADIC x "any") (
	SFUNC = posterior_internal.targets_density_accum,
	STYPE = internal,
	FINALFUNC = posterior.density_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.log_density(posterior.context, float8[], VARIADIC "any")
	IS 'joint log predictive density of all targets of the rows of a group, by the chain rule in '
		'their ORDER BY';
CREATE AGGREGATE posterior.log_density_averaged(context posterior.context, orders integer,
		seed bigint, y float8[], VARIADIC x "any") (
	SFUNC = posterior_internal.targets_density_averaged_accum,
	STYPE = internal,
	FINALFUNC = posterior.density_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.log_density_averaged(posterior.context, integer, bigint, float8[],
		VARIADIC "any") IS 'logarithm of the joint density of all targets averaged over random '
			'orders of the rows';
CREATE AGGREGATE posterior.log_evidence(y float8[], VARIADIC x "any") (
	SFUNC = posterior_internal.targets_accum,
	STYPE = internal,
	FINALFUNC = posterior.evidence_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.log_evidence(float8[], VARIADIC "any")
	IS 'log marginal likelihood of all targets of the rows in their order, under the model alone';

-- Contexts that are sums.
CREATE AGGREGATE posterior.basis(y float8[], VARIADIC x "any") (
	SFUNC = posterior_internal.targets_accum,
	STYPE = internal,
	FINALFUNC = posterior_internal.basis_final,
	COMBINEFUNC = posterior.rows_combine,
	SERIALFUNC = posterior.rows_serialize,
	DESERIALFUNC = posterior.rows_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.basis(float8[], VARIADIC "any")
	IS 'basis of sums of several targets, of a sample of rows under posterior.model: a context '
		'without rows';
CREATE FUNCTION posterior_internal.sums_targets_accum(internal, posterior.context, float8[],
		VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_sums_targets_accum' LANGUAGE C STABLE PARALLEL SAFE COST 100;
CREATE FUNCTION posterior_internal.sums_targets_remove(internal, posterior.context, float8[],
		VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_sums_targets_remove' LANGUAGE C STABLE PARALLEL SAFE COST 100;
CREATE AGGREGATE posterior.context(basis posterior.context, y float8[], VARIADIC x "any") (
	SFUNC = posterior_internal.sums_targets_accum,
	STYPE = internal,
	SSPACE = 500000,
	FINALFUNC = posterior_internal.sums_final,
	COMBINEFUNC = posterior_internal.sums_combine,
	SERIALFUNC = posterior_internal.sums_serialize,
	DESERIALFUNC = posterior_internal.sums_deserialize,
	MSFUNC = posterior_internal.sums_targets_accum,
	MINVFUNC = posterior_internal.sums_targets_remove,
	MSTYPE = internal,
	MSSPACE = 500000,
	MFINALFUNC = posterior_internal.sums_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.context(posterior.context, float8[], VARIADIC "any")
	IS 'rows with several targets as sums under a basis: of constant size, merged and taken away '
		'exactly';
CREATE FUNCTION posterior.without(context posterior.context, y float8[], VARIADIC x "any")
	RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_without_targets_row' LANGUAGE C STABLE PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION posterior.without(posterior.context, float8[], VARIADIC "any")
	IS 'a context of sums without one row of several targets, which must be among its rows';

-- Beside numbers and arrays a literal without a type, as a bare NULL, would be ambiguous. It is
-- text wherever text will do: NULL is a row without targets, anything else an error that says what
-- to write.
CREATE FUNCTION posterior_internal.sums_label_accum(internal, posterior.context, text,
		VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_sums_accum' LANGUAGE C STABLE PARALLEL SAFE COST 100;
CREATE AGGREGATE posterior.context(basis posterior.context, y text, VARIADIC x "any") (
	SFUNC = posterior_internal.sums_label_accum,
	STYPE = internal,
	SSPACE = 500000,
	FINALFUNC = posterior_internal.sums_final,
	COMBINEFUNC = posterior_internal.sums_combine,
	SERIALFUNC = posterior_internal.sums_serialize,
	DESERIALFUNC = posterior_internal.sums_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.context(posterior.context, text, VARIADIC "any")
	IS 'the same of rows whose target is a bare NULL: none; labels are an error';
CREATE FUNCTION posterior.without(context posterior.context, y text, VARIADIC x "any")
	RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_without_row' LANGUAGE C STABLE PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION posterior.without(posterior.context, text, VARIADIC "any")
	IS 'the same of a row whose target is a bare NULL: none; labels are an error';

-- Named contexts, whose target is a column of type double precision[].
CREATE FUNCTION posterior.predict_targets(context name, "row" anyelement)
	RETURNS posterior.distribution[]
	AS 'MODULE_PATHNAME', 'posterior_predict_targets_named' LANGUAGE C STABLE STRICT
		PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION posterior.predict_targets(name, anyelement)
	IS 'predictive distributions of all targets of a row given a named context; columns are '
		'matched by name';
CREATE FUNCTION posterior.sample_targets(context text, rows anyarray, draws integer DEFAULT 1,
		seed bigint DEFAULT 0, OUT draw integer, OUT ord integer, OUT y float8[])
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_sample_targets_named' LANGUAGE C STABLE STRICT
		PARALLEL RESTRICTED COST 50000 ROWS 1000;
COMMENT ON FUNCTION posterior.sample_targets(text, anyarray, integer, bigint)
	IS 'joint draws of all targets of several rows, given a named context';
CREATE FUNCTION posterior_internal.targets_density_named_accum(internal, text, float8[],
		anyelement) RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_named_accum' LANGUAGE C STABLE PARALLEL RESTRICTED;
CREATE FUNCTION posterior_internal.targets_density_averaged_named_accum(internal, text, integer,
		bigint, float8[], anyelement) RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_averaged_named_accum'
		LANGUAGE C STABLE PARALLEL RESTRICTED;
COMMENT ON FUNCTION posterior_internal.targets_density_named_accum(internal, text, float8[],
		anyelement)
	IS 'gathers rows with several targets for their density given a named context';
COMMENT ON FUNCTION posterior_internal.targets_density_averaged_named_accum(internal, text, integer,
		bigint, float8[], anyelement)
	IS 'gathers rows with several targets for their density given a named context, averaged over '
		'orders';
CREATE AGGREGATE posterior.log_density(context text, y float8[], "row" anyelement) (
	SFUNC = posterior_internal.targets_density_named_accum,
	STYPE = internal,
	FINALFUNC = posterior.density_final,
	PARALLEL = RESTRICTED
);
COMMENT ON AGGREGATE posterior.log_density(text, float8[], anyelement)
	IS 'joint log predictive density of all targets of the rows of a group, given a named context';
CREATE AGGREGATE posterior.log_density_averaged(context text, orders integer, seed bigint,
		y float8[], "row" anyelement) (
	SFUNC = posterior_internal.targets_density_averaged_named_accum,
	STYPE = internal,
	FINALFUNC = posterior.density_final,
	PARALLEL = RESTRICTED
);
COMMENT ON AGGREGATE posterior.log_density_averaged(text, integer, bigint, float8[], anyelement)
	IS 'logarithm of the joint density of all targets averaged over random orders of the rows, '
		'given a named context';
