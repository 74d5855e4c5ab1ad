-- ---- definitions of named contexts, with all that they can say ----------------------------------

ALTER TABLE posterior.context_definition
	ADD COLUMN estimators integer CHECK (estimators BETWEEN 1 AND 32),
	ADD COLUMN freshness text CHECK (freshness IN ('exact', 'bounded')),
	-- rows near to it that a question is answered from; NULL: all
	ADD COLUMN neighbours integer CHECK (neighbours > 0),
	-- the targets after the first one, where there are several
	ADD COLUMN more_targets posterior.regcolumn[] CHECK (
		pg_catalog.cardinality(more_targets) BETWEEN 1 AND 63);

CREATE FUNCTION posterior.create_context(name text, relation regclass, target text,
		features text[] DEFAULT NULL, order_by text DEFAULT NULL,
		model text DEFAULT NULL, max_rows integer DEFAULT NULL, filter text DEFAULT NULL,
			maintain text DEFAULT NULL, estimators integer DEFAULT NULL,
			freshness text DEFAULT NULL, neighbours integer DEFAULT NULL) RETURNS void
	AS 'MODULE_PATHNAME', 'posterior_create_context' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION posterior.create_context(text, regclass, text, text[], text, text, integer,
		text, text, integer, text, integer)
	IS 'give the rows of a relation a name under which they are the context of predictions';
CREATE FUNCTION posterior.alter_context(name text, relation regclass DEFAULT NULL,
		target text DEFAULT NULL, features text[] DEFAULT NULL, order_by text DEFAULT NULL,
		model text DEFAULT NULL, max_rows integer DEFAULT NULL, filter text DEFAULT NULL,
			maintain text DEFAULT NULL, new_name text DEFAULT NULL,
			estimators integer DEFAULT NULL, freshness text DEFAULT NULL,
			neighbours integer DEFAULT NULL) RETURNS void
	AS 'MODULE_PATHNAME', 'posterior_alter_context' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION posterior.alter_context(text, regclass, text, text[], text, text, integer, text,
		text, text, integer, text, integer)
	IS 'change a named context; what is NULL stays as it is';
