-- ---- decisions: surprise, improvement, other units, pools ---------------------------------------

CREATE FUNCTION posterior.surprise(d posterior.distribution, y float8) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_surprise' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION posterior.surprise(d posterior.distribution,
	y float8) IS 'two-sided tail probability of an outcome: near 0 is surprising, 1 is the median';
CREATE FUNCTION posterior.surprise(d posterior.distribution, label text) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_surprise_label' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST
		10;
COMMENT ON FUNCTION posterior.surprise(d posterior.distribution,
	label text) IS
	'probability of a label that is at most as probable as this one; NULL for what is no label of '
	'the distribution';
CREATE FUNCTION posterior.surprise(d posterior.distribution, label boolean) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_surprise_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION posterior.surprise(d posterior.distribution,
	label boolean) IS 'the same of a boolean label';
CREATE FUNCTION posterior.surprise(d posterior.distribution, label anyenum) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_surprise_of' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION posterior.surprise(d posterior.distribution,
	label anyenum) IS 'the same of a label of an enum';
CREATE FUNCTION posterior.expected_excess(d posterior.distribution, y float8) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_expected_excess' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST
		10;
COMMENT ON FUNCTION posterior.expected_excess(d posterior.distribution,
	y float8) IS 'expected amount above a threshold, 0 where it is not passed';
CREATE FUNCTION posterior.expected_improvement(d posterior.distribution, best float8,
	maximize boolean DEFAULT true) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_expected_improvement' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
		COST 10;
COMMENT ON FUNCTION posterior.expected_improvement(d posterior.distribution, best float8,
	maximize boolean) IS 'expected improvement on the best value so far';
CREATE FUNCTION posterior.probability_of_improvement(d posterior.distribution, best float8,
	maximize boolean DEFAULT true) RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_probability_of_improvement' LANGUAGE C IMMUTABLE STRICT
		PARALLEL SAFE COST 10;
COMMENT ON FUNCTION posterior.probability_of_improvement(d posterior.distribution, best float8,
	maximize boolean) IS 'probability of a value better than the best so far';
CREATE FUNCTION posterior.upper_confidence_bound(d posterior.distribution,
	kappa float8 DEFAULT 2) RETURNS float8
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 5
	RETURN posterior.mean(d) + kappa * posterior.stddev(d);
COMMENT ON FUNCTION posterior.upper_confidence_bound(d posterior.distribution,
	kappa float8) IS 'mean plus kappa standard deviations; a negative kappa gives the lower bound';
CREATE FUNCTION posterior.affine(d posterior.distribution, scale float8,
	shift float8 DEFAULT 0) RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_affine' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION posterior.affine(d posterior.distribution, scale float8,
	shift float8) IS 'the distribution in other units: of scale times the value plus shift';
CREATE FUNCTION posterior.pool(distributions posterior.distribution[],
	weights float8[]) RETURNS posterior.distribution
	AS 'MODULE_PATHNAME', 'posterior_pool' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION posterior.pool(distributions posterior.distribution[],
	weights float8[]) IS
	'weighted mixture of normal distributions and mixtures: the linear opinion pool';
