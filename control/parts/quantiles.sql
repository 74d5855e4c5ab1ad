-- ---- distributions made from quantiles ----------------------------------------------------------

CREATE FUNCTION posterior.from_quantiles(quantiles float8[], lower_tail float8, upper_tail float8)
	RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_from_quantiles' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
		COST 5;
COMMENT ON FUNCTION posterior.from_quantiles(float8[], float8, float8)
	IS 'distribution with these increasing quantiles at the levels 1/(n+1) … n/(n+1), uniform '
		'between them, and exponential tails of these scales';
COMMENT ON TYPE posterior.distribution
	IS 'a predictive distribution: normal, mixture of normals, bars, quantiles or categorical';
COMMENT ON FUNCTION posterior.kind(d posterior.distribution)
	IS 'normal, mixture, bars, bars_half_normal, quantiles or categorical';
