\set rows random(0, 2) * 6
SELECT check_altered();
SELECT posterior.alter_context('altered', max_rows => :rows);
SELECT check_altered();
BEGIN;
SELECT posterior.alter_context('altered', max_rows => 10);
SELECT check_altered();
ROLLBACK;
SELECT check_altered();
