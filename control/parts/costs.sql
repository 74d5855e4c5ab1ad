-- ---- costs --------------------------------------------------------------------------------------
-- A call takes about a millisecond, which JIT compilation does not shorten. The planner is told so
-- much that parallel plans come from a second of work on, and JIT, which costs some tenths of a
-- second, only where a statement runs for many.
ALTER FUNCTION posterior.regress(float8, VARIADIC "any") COST 1000;
ALTER FUNCTION posterior.classify("any", VARIADIC "any") COST 1000;
ALTER FUNCTION posterior.predict(posterior.context, VARIADIC "any") COST 1000;
ALTER FUNCTION posterior.predict(name, anyelement) COST 1000;
ALTER FUNCTION posterior.predict(text, anyarray) COST 10000;
ALTER FUNCTION posterior.predict_rows(posterior.context, anyarray) COST 10000;
ALTER FUNCTION posterior.predict_rows(text, anyarray) COST 10000;
ALTER FUNCTION posterior.predict_summary(posterior.context, anyarray, float8[],
	float8[]) COST 10000;
ALTER FUNCTION posterior.predict_summary(text, anyarray, float8[], float8[]) COST 10000;
ALTER FUNCTION posterior.sample(posterior.context, anyarray, integer, bigint) COST 50000;
ALTER FUNCTION posterior.sample(text, anyarray, integer, bigint) COST 50000;
ALTER FUNCTION posterior.sample_labels(posterior.context, anyarray, integer, bigint) COST 50000;
ALTER FUNCTION posterior.sample_labels(text, anyarray, integer, bigint) COST 50000;
ALTER FUNCTION posterior.density_final(internal) COST 10000;
ALTER FUNCTION posterior.evidence_final(internal) COST 10000;
