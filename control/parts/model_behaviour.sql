-- ---- how models keep contexts -------------------------------------------------------------------
-- Follows from the file, so rows of any origin have it: restored ones and those of version 1.0.

CREATE TYPE posterior_internal.model_behaviour AS (appendable boolean, mergeable boolean,
	row_bytes bigint, gpu boolean, targets integer, revisable boolean,
	any_targets boolean);
COMMENT ON TYPE posterior_internal.model_behaviour IS 'how a model keeps a context';
CREATE FUNCTION posterior_internal.model_behaviour(file bytea)
	RETURNS posterior_internal.model_behaviour
	AS 'MODULE_PATHNAME', 'posterior_model_behaviour' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
		COST 100000;
COMMENT ON FUNCTION posterior_internal.model_behaviour(bytea)
	IS 'how the model of a file keeps a context; NULL for what is no model';
ALTER TABLE posterior.model_file ADD COLUMN behaviour posterior_internal.model_behaviour
	GENERATED ALWAYS AS (posterior_internal.model_behaviour(file)) STORED;
CREATE OR REPLACE VIEW posterior.models AS
	SELECT name, description, architecture, context, head, classes, features, max_features,
		min_rows, buffer, takes_missing, takes_categories,
		parameters, pg_catalog.octet_length(file) AS bytes, bundled, loaded_by, loaded_at,
		(behaviour).appendable, (behaviour).mergeable, (behaviour).row_bytes, (behaviour).gpu,
		(behaviour).targets, (behaviour).revisable, (behaviour).any_targets
	FROM posterior.model_file;
COMMENT ON COLUMN posterior.models.appendable
	IS 'whether rows that are appended are encoded by themselves; otherwise all rows are encoded '
		'again, of models with a buffer of K rows once in K rows, and where buffer is NULL once '
		'the prefix grows';
COMMENT ON COLUMN posterior.models.mergeable
	IS 'whether contexts of parts of a table can be merged, and rows taken away, in time that does '
		'not depend on the rows that there are (posterior.merge)';
COMMENT ON COLUMN posterior.models.revisable
	IS 'whether rows of a context that are deleted or changed are encoded by themselves, wherever '
		'they are; otherwise those after them are encoded again, too';
COMMENT ON COLUMN posterior.models.row_bytes
	IS 'bytes of an encoding per row of its context, beside the row itself and the room that is '
		'left for more, half of it or more with posterior.kernels = half; 0 where they are the '
		'same for any number of rows';
COMMENT ON COLUMN posterior.models.gpu
	IS 'whether the server has GPU kernels for it; otherwise the CPU answers';
COMMENT ON COLUMN posterior.models.targets
	IS 'how many targets a row has; more than 1 are given as an array';
COMMENT ON COLUMN posterior.models.any_targets
	IS 'whether rows may have any number of targets up to 64, each answered as if it were alone, '
		'from keys that are kept once';
COMMENT ON COLUMN posterior.models.architecture IS 'family of the network';
COMMENT ON COLUMN posterior.models.head IS 'kind of its distributions';
