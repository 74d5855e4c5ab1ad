-- ---- estimators of context values ---------------------------------------------------------------

CREATE FUNCTION posterior.with_estimators(context posterior.context, estimators integer)
	RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_context_with_estimators'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION posterior.with_estimators(posterior.context, integer)
	IS 'the same rows for models that average over so many views of a table; 0: as many as '
		'posterior.estimators says';
CREATE FUNCTION posterior.estimators(context posterior.context) RETURNS integer
	AS 'MODULE_PATHNAME', 'posterior_context_estimator_count'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION posterior.estimators(posterior.context)
	IS 'how many views of its table a context is to have; NULL: posterior.estimators says it';
