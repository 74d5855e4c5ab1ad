-- probabilities of labels that are not text
CREATE FUNCTION posterior.probability(d posterior.distribution, label "any") RETURNS float8
	AS 'MODULE_PATHNAME', 'posterior_probability_of' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION posterior.probability(d posterior.distribution, label "any")
	IS 'probability of a label that is a boolean, an integer or of an enum; NULL for what is no '
		'label of the distribution';
