-- ---- the order of rows that no column orders ----------------------------------------------------

CREATE FUNCTION posterior_internal.row_hash(VARIADIC "any") RETURNS int8
	AS 'MODULE_PATHNAME', 'posterior_row_hash' LANGUAGE C STABLE PARALLEL SAFE COST 2;
COMMENT ON FUNCTION posterior_internal.row_hash(VARIADIC "any")
	IS 'number by which a named context orders rows that its order leaves equal';
