-- ---- contexts that are sums ---------------------------------------------------------------------

CREATE FUNCTION posterior_internal.basis_final(internal) RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_basis_final' LANGUAGE C STABLE PARALLEL SAFE;
CREATE AGGREGATE posterior.basis(y float8, VARIADIC x "any") (
	SFUNC = posterior.rows_accum,
	STYPE = internal,
	FINALFUNC = posterior_internal.basis_final,
	COMBINEFUNC = posterior.rows_combine,
	SERIALFUNC = posterior.rows_serialize,
	DESERIALFUNC = posterior.rows_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.basis(float8, VARIADIC "any")
	IS 'basis of sums, of a sample of rows under posterior.model: a context without rows';
CREATE FUNCTION posterior.basis(context posterior.context) RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_context_basis' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION posterior.basis(posterior.context)
	IS 'a context without rows of the basis of a context of sums';

CREATE FUNCTION posterior_internal.sums_accum(internal, posterior.context, float8, VARIADIC "any")
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_sums_accum' LANGUAGE C STABLE PARALLEL SAFE COST 100;
CREATE FUNCTION posterior_internal.sums_remove(internal, posterior.context, float8, VARIADIC "any")
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_sums_remove' LANGUAGE C STABLE PARALLEL SAFE COST 100;
CREATE FUNCTION posterior_internal.sums_combine(internal, internal) RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_sums_combine' LANGUAGE C STABLE PARALLEL SAFE;
CREATE FUNCTION posterior_internal.sums_serialize(internal) RETURNS bytea
	AS 'MODULE_PATHNAME', 'posterior_sums_serialize' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior_internal.sums_deserialize(bytea, internal) RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_sums_deserialize' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION posterior_internal.sums_final(internal) RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_sums_final' LANGUAGE C STABLE PARALLEL SAFE;
CREATE AGGREGATE posterior.context(basis posterior.context, y float8, VARIADIC x "any") (
	SFUNC = posterior_internal.sums_accum,
	STYPE = internal,
	SSPACE = 500000,
	FINALFUNC = posterior_internal.sums_final,
	COMBINEFUNC = posterior_internal.sums_combine,
	SERIALFUNC = posterior_internal.sums_serialize,
	DESERIALFUNC = posterior_internal.sums_deserialize,
	MSFUNC = posterior_internal.sums_accum,
	MINVFUNC = posterior_internal.sums_remove,
	MSTYPE = internal,
	MSSPACE = 500000,
	MFINALFUNC = posterior_internal.sums_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.context(posterior.context, float8, VARIADIC "any")
	IS 'rows as sums under a basis: of constant size, merged and taken away exactly';

-- Partial states that leave a server have a type that can be written and read.
CREATE FUNCTION posterior_internal.sums_merge_into(posterior.context, posterior.context)
	RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_sums_merge_into' LANGUAGE C STABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION posterior_internal.sums_rows_into(posterior.context, posterior.context,
		posterior.context)
	RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_sums_rows_into' LANGUAGE C STABLE PARALLEL SAFE COST 100;
CREATE FUNCTION posterior_internal.sums_flat(posterior.context) RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_sums_flat' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE AGGREGATE posterior.context(basis posterior.context, "rows" posterior.context) (
	SFUNC = posterior_internal.sums_rows_into,
	STYPE = posterior.context,
	SSPACE = 500000,
	FINALFUNC = posterior_internal.sums_flat,
	COMBINEFUNC = posterior_internal.sums_merge_into,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.context(posterior.context, posterior.context)
	IS 'rows of contexts as sums under a basis: equal to sums of the rows themselves';

CREATE FUNCTION posterior_internal.sums_merge_accum(internal, posterior.context) RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_sums_merge_accum' LANGUAGE C STABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION posterior_internal.sums_merge_remove(internal, posterior.context) RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_sums_merge_remove' LANGUAGE C STABLE PARALLEL SAFE COST 1000;
CREATE AGGREGATE posterior.merge(context posterior.context) (
	SFUNC = posterior_internal.sums_merge_into,
	STYPE = posterior.context,
	SSPACE = 500000,
	FINALFUNC = posterior_internal.sums_flat,
	COMBINEFUNC = posterior_internal.sums_merge_into,
	MSFUNC = posterior_internal.sums_merge_accum,
	MINVFUNC = posterior_internal.sums_merge_remove,
	MSTYPE = internal,
	MSSPACE = 500000,
	MFINALFUNC = posterior_internal.sums_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE posterior.merge(posterior.context)
	IS 'contexts of sums of one basis as one context: equal to one of all their rows';
CREATE FUNCTION posterior.merge(a posterior.context, b posterior.context) RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_merge' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION posterior.merge(posterior.context, posterior.context)
	IS 'the rows of both contexts of sums, which have one basis';
CREATE FUNCTION posterior.without(a posterior.context, b posterior.context)
	RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_without' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION posterior.without(posterior.context, posterior.context)
	IS 'the rows of a context of sums without those of another, which must be among them';
CREATE FUNCTION posterior.without(context posterior.context, y float8, VARIADIC x "any")
	RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_without_row' LANGUAGE C STABLE PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION posterior.without(posterior.context, float8, VARIADIC "any")
	IS 'a context of sums without one row, which must be among its rows';
CREATE FUNCTION posterior.log_evidence(context posterior.context) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_sums_log_evidence' LANGUAGE C STABLE STRICT PARALLEL SAFE
	COST 100000;
COMMENT ON FUNCTION posterior.log_evidence(posterior.context)
	IS 'log density of the targets of a context of sums, in closed form';
