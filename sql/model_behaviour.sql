-- model_behaviour: how each kind of model keeps a context, and that it does
CREATE SCHEMA model_behaviour;
SET search_path = model_behaviour;
CREATE TABLE loaded (model text PRIMARY KEY);
INSERT INTO loaded VALUES ('mean'), ('latent'), ('latent_buffer'), ('decoupled'),
	('decoupled_one'), ('decoupled_causal'), ('decoupled_convolution'), ('decoupled_lstm'),
	('scan'), ('scan_prefix_causal'), ('deep_kernel'),
	('random_features_causal'), ('joint_full'), ('joint_prefix'),
	('packed_tnpd'), ('packed_causal'), ('incremental'), ('set'), ('sums');
SELECT count(posterior.load_model(model, current_setting('test.models') || '/' || model
		|| '.safetensors')) AS loaded FROM loaded;
SELECT name, architecture, context, head, buffer, appendable, mergeable, revisable, row_bytes, gpu
FROM posterior.models JOIN loaded ON model = name ORDER BY name COLLATE "C";
SELECT name, appendable, row_bytes > 0 AS grows, gpu FROM posterior.models WHERE bundled
ORDER BY name COLLATE "C";
-- a file that is no model, as a dump could bring it, has none of this
BEGIN;
INSERT INTO posterior.model_file (name, file, architecture, context, head, description,
	max_features, min_rows, takes_missing, takes_categories, parameters)
VALUES ('broken', '\x00', '', '', '', '', 0, 0, false, false, 0);
SELECT name, appendable, row_bytes, gpu FROM posterior.models WHERE name = 'broken';
ROLLBACK;
SELECT count(posterior.drop_model(model)) AS models FROM loaded;
DROP TABLE loaded;
DROP SCHEMA model_behaviour;
