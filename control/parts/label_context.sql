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
