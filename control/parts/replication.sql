-- ---- logical replication ------------------------------------------------------------------------

CREATE FUNCTION posterior_internal.end_sums(kept uuid) RETURNS void
	AS 'MODULE_PATHNAME', 'posterior_end_sums' LANGUAGE C VOLATILE STRICT;
REVOKE ALL ON FUNCTION posterior_internal.end_sums(uuid) FROM PUBLIC;
COMMENT ON FUNCTION posterior_internal.end_sums(uuid)
	IS 'deletes sums and notes of a named context that has gone; the library calls it';

-- A publication FOR ALL TABLES has the tables of the extension, too. A subscriber notes the rows
-- that come to it by triggers of its own, so that notes and sums of the publisher would count them
-- twice: none comes in. The library writes these tables without triggers.
CREATE FUNCTION posterior_internal.keep_out() RETURNS trigger LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN NULL; END';
COMMENT ON FUNCTION posterior_internal.keep_out()
	IS 'trigger of tables of the extension: keeps out what logical replication applies';
CREATE TRIGGER keep_out BEFORE INSERT OR UPDATE OR DELETE ON posterior_internal.kept_sums
	FOR EACH ROW EXECUTE FUNCTION posterior_internal.keep_out();
ALTER TABLE posterior_internal.kept_sums ENABLE REPLICA TRIGGER keep_out;
CREATE TRIGGER keep_out BEFORE INSERT OR UPDATE OR DELETE ON posterior_internal.noted_row
	FOR EACH ROW EXECUTE FUNCTION posterior_internal.keep_out();
ALTER TABLE posterior_internal.noted_row ENABLE REPLICA TRIGGER keep_out;

-- Bundled models are there already on either side.
CREATE TRIGGER keep_out BEFORE INSERT ON posterior.model_file
	FOR EACH ROW WHEN (NEW.bundled) EXECUTE FUNCTION posterior_internal.keep_out();
ALTER TABLE posterior.model_file ENABLE REPLICA TRIGGER keep_out;
