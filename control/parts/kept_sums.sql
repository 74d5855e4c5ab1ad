-- ---- named contexts that keep sums --------------------------------------------------------------

-- What the answers of such a context depend on besides its rows is a fact of its definition: the
-- basis of its sums and the fit of its model. Its triggers note rows under `kept`.
ALTER TABLE posterior.context_definition
	ADD COLUMN kept uuid,
	ADD COLUMN basis posterior.context,
	ADD COLUMN fit bytea,
	DROP CONSTRAINT context_definition_maintain_check,
	ADD CONSTRAINT context_definition_maintain_check
		CHECK (maintain IN ('trigger', 'read', 'sums'));

-- The sums of some of the rows, and the rows that were added to them (sign 1) or taken away since.
-- What a snapshot shows of both are the sums of what it shows of the table, if the table has the
-- signature. Notes of transactions before `noted_from` are all in the sums, so that readers pass
-- over them, though an old snapshot keeps them from being removed. Only the library writes and
-- reads both tables; dumps leave them out.
CREATE TABLE posterior_internal.kept_sums (
	kept uuid PRIMARY KEY,
	version uuid NOT NULL,
	signature bytea NOT NULL,
	noted_from xid8 NOT NULL,
	sums posterior.context NOT NULL
) USING heap;
ALTER TABLE posterior_internal.kept_sums ALTER COLUMN sums SET STORAGE EXTERNAL;
COMMENT ON TABLE posterior_internal.kept_sums IS 'sums of the rows of named contexts';
CREATE TABLE posterior_internal.noted_row (
	kept uuid NOT NULL,
	writer xid8 NOT NULL,
	sign smallint NOT NULL,
	cells bytea
) USING heap;
ALTER TABLE posterior_internal.noted_row ALTER COLUMN cells SET STORAGE PLAIN;
CREATE INDEX noted_row_kept ON posterior_internal.noted_row (kept, writer);
COMMENT ON TABLE posterior_internal.noted_row
	IS 'rows that were added to the sums of named contexts or taken away, and are not yet in them';

CREATE FUNCTION posterior.note_sums() RETURNS trigger
	AS 'MODULE_PATHNAME', 'posterior_note_sums' LANGUAGE C;
COMMENT ON FUNCTION posterior.note_sums()
	IS 'trigger of tables with named contexts that keep sums: notes rows that come and go';
CREATE FUNCTION posterior.sums(context text) RETURNS posterior.context
	AS 'MODULE_PATHNAME', 'posterior_named_sums' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED
	COST 10000;
COMMENT ON FUNCTION posterior.sums(text)
	IS 'the rows of a named context that keeps sums, as a context value of sums';
