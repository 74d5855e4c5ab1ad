-- ---- joint Gaussians ----------------------------------------------------------------------------

CREATE FUNCTION posterior.joint(context posterior.context, rows anyarray, OUT mean float8[],
		OUT covariance float8[])
	AS 'MODULE_PATHNAME', 'posterior_joint' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 50000;
COMMENT ON FUNCTION posterior.joint(posterior.context, anyarray)
	IS 'means and covariances of the targets of several rows, in closed form, of models whose head '
		'is joint-gaussian; several targets of a row stand side by side';
CREATE FUNCTION posterior.joint(context text, rows anyarray, OUT mean float8[],
		OUT covariance float8[])
	AS 'MODULE_PATHNAME', 'posterior_joint_named' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED
		COST 50000;
COMMENT ON FUNCTION posterior.joint(text, anyarray)
	IS 'means and covariances of the targets of several rows, given a named context';
