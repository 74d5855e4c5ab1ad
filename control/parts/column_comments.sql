-- What the columns of the views mean; docs/sql.md is written from these comments.

COMMENT ON COLUMN posterior.models.name IS 'name, as in posterior.model';
COMMENT ON COLUMN posterior.models.description IS 'one line from the model file';
COMMENT ON COLUMN posterior.models.context
	IS 'which context rows see each other: full, causal or prefix-causal';
COMMENT ON COLUMN posterior.models.classes
	IS 'most labels of a context, NULL for targets that are numbers';
COMMENT ON COLUMN posterior.models.features
	IS 'number of feature columns that it needs, NULL where any number will do';
COMMENT ON COLUMN posterior.models.max_features
	IS 'most feature columns that it uses; of more it takes the most relevant';
COMMENT ON COLUMN posterior.models.min_rows IS 'rows of a context that it needs for a prediction';
COMMENT ON COLUMN posterior.models.buffer
	IS 'most rows of a joint draw or density per encoding, NULL without limit';
COMMENT ON COLUMN posterior.models.takes_missing IS 'whether features may be NULL';
COMMENT ON COLUMN posterior.models.takes_categories IS 'whether features may be text or enums';
COMMENT ON COLUMN posterior.models.parameters IS 'number of weights';
COMMENT ON COLUMN posterior.models.bytes IS 'size of the model file';
COMMENT ON COLUMN posterior.models.bundled IS 'whether it comes with the extension';
COMMENT ON COLUMN posterior.models.loaded_by IS 'role that loaded it';
COMMENT ON COLUMN posterior.models.loaded_at IS 'when it was loaded';

COMMENT ON COLUMN posterior.contexts.name IS 'name of the context';
COMMENT ON COLUMN posterior.contexts.owner IS 'role that may change and drop it';
COMMENT ON COLUMN posterior.contexts.relation IS 'table or view of its rows';
COMMENT ON COLUMN posterior.contexts.target
	IS 'column that is predicted, or several as in {y1,y2}';
COMMENT ON COLUMN posterior.contexts.features IS 'columns that predictions are made from';
COMMENT ON COLUMN posterior.contexts.order_by IS 'order of the rows';
COMMENT ON COLUMN posterior.contexts.filter IS 'condition on the rows, NULL for all rows';
COMMENT ON COLUMN posterior.contexts.model IS 'model of its predictions';
COMMENT ON COLUMN posterior.contexts.max_rows
	IS 'number of newest rows that are used, NULL for all';
COMMENT ON COLUMN posterior.contexts.maintain
	IS 'trigger: triggers report writes; sums: triggers note rows that come and go; read: each '
		'statement reads the rows';
COMMENT ON COLUMN posterior.contexts.refreshed_rows
	IS 'rows of the prefix that refresh_context has set, NULL where the canonical prefix holds or '
		'the rows may not be counted';
COMMENT ON COLUMN posterior.contexts.estimators
	IS 'views of the table that a model averages over, NULL for posterior.estimators';
COMMENT ON COLUMN posterior.contexts.freshness
	IS 'exact: all rows are the context; bounded: those up to the last boundary';
COMMENT ON COLUMN posterior.contexts.neighbours
	IS 'rows near to it that each question is answered from, NULL for all';

COMMENT ON COLUMN posterior.stat_contexts.name IS 'name of the context';
COMMENT ON COLUMN posterior.stat_contexts.relation IS 'table or view of its rows';
COMMENT ON COLUMN posterior.stat_contexts.skips
	IS 'statements that read no row: nothing had changed';
COMMENT ON COLUMN posterior.stat_contexts.deltas IS 'statements that read the new rows only';
COMMENT ON COLUMN posterior.stat_contexts.reads
	IS 'statements that read all rows and found them encoded';
COMMENT ON COLUMN posterior.stat_contexts.extensions
	IS 'statements that read all rows and encoded some';
COMMENT ON COLUMN posterior.stat_contexts.rebuilds IS 'statements that read and encoded all rows';
COMMENT ON COLUMN posterior.stat_contexts.private
	IS 'statements that kept their encoding to themselves: own uncommitted rows, policies, or no '
		'room in the cache';
COMMENT ON COLUMN posterior.stat_contexts.rows IS 'rows at the last use';
COMMENT ON COLUMN posterior.stat_contexts.prefix_rows
	IS 'rows of the prefix, which see each other; of a context that keeps sums those that its '
		'precisions were found of';
COMMENT ON COLUMN posterior.stat_contexts.suffix_rows
	IS 'rows after the prefix, each of which sees the rows before it';
COMMENT ON COLUMN posterior.stat_contexts.bytes IS 'memory of the encoding';
COMMENT ON COLUMN posterior.stat_contexts.drift
	IS 'distance of the rows after the prefix from the prefix, in standard deviations; of a '
		'context that keeps sums, of its rows from those that its precisions were found of';
COMMENT ON COLUMN posterior.stat_contexts.waiting_rows
	IS 'rows that wait for the next boundary (freshness bounded)';
COMMENT ON COLUMN posterior.stat_contexts.revisions
	IS 'statements that read all rows and encoded those that were deleted or changed only';

COMMENT ON COLUMN posterior.stat_progress.pid IS 'process';
COMMENT ON COLUMN posterior.stat_progress.name
	IS 'name of the context; NULL for a context value, a frame or an evidence, and while the '
		'context is created';
COMMENT ON COLUMN posterior.stat_progress.phase
	IS 'reading rows, encoding prefix, encoding suffix, answering questions, drawing or scoring';
COMMENT ON COLUMN posterior.stat_progress.done
	IS 'rows so far, each as often as it is drawn or scored';
COMMENT ON COLUMN posterior.stat_progress.total IS 'rows in all';

COMMENT ON COLUMN posterior.stat_server.state IS 'off, waiting, starting or ready';
COMMENT ON COLUMN posterior.stat_server.pid IS 'process of the server';
COMMENT ON COLUMN posterior.stat_server.started IS 'when it was started';
COMMENT ON COLUMN posterior.stat_server.starts IS 'how often it was started';
COMMENT ON COLUMN posterior.stat_server.faults
	IS 'requests that failed because of the server or the device';
COMMENT ON COLUMN posterior.stat_server.fallbacks
	IS 'failed requests that the session answered instead';
COMMENT ON COLUMN posterior.stat_server.last_end IS 'why the last server process ended';
COMMENT ON COLUMN posterior.stat_server.clients IS 'connected sessions';
COMMENT ON COLUMN posterior.stat_server.waiting IS 'requests that wait';
COMMENT ON COLUMN posterior.stat_server.requests IS 'requests since its start';
COMMENT ON COLUMN posterior.stat_server.batches IS 'calls of the device that answered them';
COMMENT ON COLUMN posterior.stat_server.largest_batch IS 'most requests in one call';
COMMENT ON COLUMN posterior.stat_server.failures
	IS 'requests that failed; not those that a device leaves to the session';
COMMENT ON COLUMN posterior.stat_server.cancelled IS 'requests that were withdrawn';
COMMENT ON COLUMN posterior.stat_server.rows_received IS 'context rows that sessions sent';
COMMENT ON COLUMN posterior.stat_server.builds IS 'encodings from the first row on';
COMMENT ON COLUMN posterior.stat_server.appends IS 'encodings that grew';
COMMENT ON COLUMN posterior.stat_server.evictions IS 'encodings and models that gave way';
COMMENT ON COLUMN posterior.stat_server.models IS 'models in its memory';
COMMENT ON COLUMN posterior.stat_server.encodings IS 'encodings in its memory';
COMMENT ON COLUMN posterior.stat_server.memory_used IS 'bytes of device memory in use';
COMMENT ON COLUMN posterior.stat_server.memory_limit IS 'bytes of device memory that it may use';

COMMENT ON COLUMN posterior.devices.place IS 'session or server';
COMMENT ON COLUMN posterior.devices.provider IS 'cpu or cuda';
COMMENT ON COLUMN posterior.devices.name IS 'name of the device';
COMMENT ON COLUMN posterior.devices.version IS 'version of its driver and runtime';
COMMENT ON COLUMN posterior.devices."precision" IS 'inputs of matrix products: fp16 or fp32';
COMMENT ON COLUMN posterior.devices.memory IS 'bytes of its memory';
COMMENT ON COLUMN posterior.devices.memory_limit IS 'bytes that may be used';
COMMENT ON COLUMN posterior.devices.memory_used IS 'bytes in use';
