BEGIN;
ALTER TABLE h DISABLE TRIGGER USER;
INSERT INTO h (x, y, z) VALUES (random(), random(), 1);
ALTER TABLE h ENABLE ALWAYS TRIGGER posterior_note_statement;
ALTER TABLE h ENABLE ALWAYS TRIGGER posterior_note_insert;
ALTER TABLE h ENABLE REPLICA TRIGGER posterior_note_change;
INSERT INTO h (x, y, z) VALUES (random(), random(), 2);
COMMIT;
SELECT check_causal('causal');
