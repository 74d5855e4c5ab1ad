-- ---- one word for numbers and labels ------------------------------------------------------------
-- The type of the target decides: numbers give a context of numbers, text, booleans and enums one
-- of labels. A literal without a type is text to PostgreSQL wherever text will do.

CREATE FUNCTION posterior_internal.label_accum(internal, text, VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_class_rows_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION posterior_internal.label_accum(internal, boolean, VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_class_rows_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION posterior_internal.label_accum(internal, anyenum, VARIADIC "any") RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_class_rows_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION posterior_internal.label_accum(internal, text, VARIADIC "any")
	IS 'gathers rows with labels of text';
COMMENT ON FUNCTION posterior_internal.label_accum(internal, boolean, VARIADIC "any")
	IS 'gathers rows with boolean labels';
COMMENT ON FUNCTION posterior_internal.label_accum(internal, anyenum, VARIADIC "any")
	IS 'gathers rows with labels of an enum';

CREATE AGGREGATE posterior.context(label text, VARIADIC x "any") (
	SFUNC = posterior_internal.label_accum, STYPE = internal,
	FINALFUNC = posterior.context_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE posterior.context(text, VARIADIC "any")
	IS 'rows as a context of labels, the same as class_context';
CREATE AGGREGATE posterior.context(label boolean, VARIADIC x "any") (
	SFUNC = posterior_internal.label_accum, STYPE = internal,
	FINALFUNC = posterior.context_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE posterior.context(boolean, VARIADIC "any")
	IS 'the same of boolean labels';
CREATE AGGREGATE posterior.context(label anyenum, VARIADIC x "any") (
	SFUNC = posterior_internal.label_accum, STYPE = internal,
	FINALFUNC = posterior.context_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE posterior.context(anyenum, VARIADIC "any")
	IS 'the same of labels of an enum';

CREATE FUNCTION posterior.regress(label text, VARIADIC x "any") RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_classify' LANGUAGE C STABLE WINDOW PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION posterior.regress(text, VARIADIC "any")
	IS 'probabilities of the labels of the current row, the same as classify';
CREATE FUNCTION posterior.regress(label boolean, VARIADIC x "any") RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_classify' LANGUAGE C STABLE WINDOW PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION posterior.regress(boolean, VARIADIC "any")
	IS 'the same of boolean labels';
CREATE FUNCTION posterior.regress(label anyenum, VARIADIC x "any") RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_classify' LANGUAGE C STABLE WINDOW PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION posterior.regress(anyenum, VARIADIC "any")
	IS 'the same of labels of an enum';

-- Densities and evidence of labels that are no text. The row of a named context is anycompatible
-- beside an enum, as anyelement would have to be of its type.
CREATE FUNCTION posterior_internal.label_density_accum(internal, posterior.context, boolean,
	VARIADIC "any")
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_accum' LANGUAGE C
		IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION posterior_internal.label_density_averaged_accum(internal, posterior.context,
	integer, bigint, boolean, VARIADIC "any")
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_averaged_accum' LANGUAGE C
		IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION posterior_internal.label_density_named_accum(internal, text, boolean, anyelement)
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_named_accum' LANGUAGE C
		STABLE PARALLEL RESTRICTED;
CREATE FUNCTION posterior_internal.label_density_averaged_named_accum(internal, text,
	integer, bigint, boolean, anyelement)
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_averaged_named_accum' LANGUAGE C
		STABLE PARALLEL RESTRICTED;
CREATE FUNCTION posterior_internal.label_density_accum(internal, posterior.context, anyenum,
	VARIADIC "any")
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_accum' LANGUAGE C
		STABLE PARALLEL SAFE;
CREATE FUNCTION posterior_internal.label_density_averaged_accum(internal, posterior.context,
	integer, bigint, anyenum, VARIADIC "any")
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_averaged_accum' LANGUAGE C
		STABLE PARALLEL SAFE;
CREATE FUNCTION posterior_internal.label_density_named_accum(internal, text, anyenum, anycompatible)
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_named_accum' LANGUAGE C
		STABLE PARALLEL RESTRICTED;
CREATE FUNCTION posterior_internal.label_density_averaged_named_accum(internal, text,
	integer, bigint, anyenum, anycompatible)
	RETURNS internal
	AS 'MODULE_PATHNAME', 'posterior_density_averaged_named_accum' LANGUAGE C
		STABLE PARALLEL RESTRICTED;
CREATE AGGREGATE posterior.log_density(context posterior.context, label boolean, VARIADIC x "any") (
	SFUNC = posterior_internal.label_density_accum, STYPE = internal,
	FINALFUNC = posterior.density_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE posterior.log_density(posterior.context, boolean, VARIADIC "any")
	IS 'the same of boolean labels';
CREATE AGGREGATE posterior.log_density(context text, label boolean, "row" anyelement) (
	SFUNC = posterior_internal.label_density_named_accum, STYPE = internal,
	FINALFUNC = posterior.density_final, PARALLEL = RESTRICTED);
COMMENT ON AGGREGATE posterior.log_density(text, boolean, anyelement)
	IS 'the same of boolean labels';
CREATE AGGREGATE posterior.log_density_averaged(context posterior.context, orders integer,
		seed bigint, label boolean, VARIADIC x "any") (
	SFUNC = posterior_internal.label_density_averaged_accum, STYPE = internal,
	FINALFUNC = posterior.density_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE posterior.log_density_averaged(posterior.context, integer, bigint, boolean,
		VARIADIC "any")
	IS 'the same of boolean labels';
CREATE AGGREGATE posterior.log_density_averaged(context text, orders integer, seed bigint,
		label boolean, "row" anyelement) (
	SFUNC = posterior_internal.label_density_averaged_named_accum, STYPE = internal,
	FINALFUNC = posterior.density_final, PARALLEL = RESTRICTED);
COMMENT ON AGGREGATE posterior.log_density_averaged(text, integer, bigint, boolean, anyelement)
	IS 'the same of boolean labels';
CREATE AGGREGATE posterior.log_evidence(label boolean, VARIADIC x "any") (
	SFUNC = posterior_internal.label_accum, STYPE = internal,
	FINALFUNC = posterior.evidence_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE posterior.log_evidence(boolean, VARIADIC "any")
	IS 'the same of boolean labels';
CREATE AGGREGATE posterior.log_density(context posterior.context, label anyenum, VARIADIC x "any") (
	SFUNC = posterior_internal.label_density_accum, STYPE = internal,
	FINALFUNC = posterior.density_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE posterior.log_density(posterior.context, anyenum, VARIADIC "any")
	IS 'the same of labels of an enum';
CREATE AGGREGATE posterior.log_density(context text, label anyenum, "row" anycompatible) (
	SFUNC = posterior_internal.label_density_named_accum, STYPE = internal,
	FINALFUNC = posterior.density_final, PARALLEL = RESTRICTED);
COMMENT ON AGGREGATE posterior.log_density(text, anyenum, anycompatible)
	IS 'the same of labels of an enum';
CREATE AGGREGATE posterior.log_density_averaged(context posterior.context, orders integer,
		seed bigint, label anyenum, VARIADIC x "any") (
	SFUNC = posterior_internal.label_density_averaged_accum, STYPE = internal,
	FINALFUNC = posterior.density_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE posterior.log_density_averaged(posterior.context, integer, bigint, anyenum,
		VARIADIC "any")
	IS 'the same of labels of an enum';
CREATE AGGREGATE posterior.log_density_averaged(context text, orders integer, seed bigint,
		label anyenum, "row" anycompatible) (
	SFUNC = posterior_internal.label_density_averaged_named_accum, STYPE = internal,
	FINALFUNC = posterior.density_final, PARALLEL = RESTRICTED);
COMMENT ON AGGREGATE posterior.log_density_averaged(text, integer, bigint, anyenum, anycompatible)
	IS 'the same of labels of an enum';
CREATE AGGREGATE posterior.log_evidence(label anyenum, VARIADIC x "any") (
	SFUNC = posterior_internal.label_accum, STYPE = internal,
	FINALFUNC = posterior.evidence_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE posterior.log_evidence(anyenum, VARIADIC "any")
	IS 'the same of labels of an enum';
