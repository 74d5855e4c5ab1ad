# Tables that another extension writes while a transaction commits: before, and after this one has told the table's ring what the transaction did.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $models = $ENV{TEST_MODELS};
my $library = "$ENV{TEST_LIBRARIES}/late_writer";
my $node = PostgreSQL::Test::Cluster->new('late');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = '$library, pg_posterior'\nmax_prepared_transactions = 10\n");
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	CREATE FUNCTION late_write(text) RETURNS void AS '$library' LANGUAGE C STRICT;
	SELECT posterior.load_model('causal', '$models/packed_causal.safetensors');
	CREATE TABLE t (k int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, x float8, z int NOT NULL DEFAULT 1, y float8);
	CREATE TABLE go (i int);
	INSERT INTO t (x, y) SELECT i / 10.0, sin(i) FROM generate_series(1, 30) i;
	SELECT posterior.create_context('c', 't', 'y', features => '{x,z}', order_by => 'k', model => 'causal');
	CREATE FUNCTION same() RETURNS text STABLE LANGUAGE sql SET posterior.model = 'causal' AS \$\$
		WITH s AS MATERIALIZED (SELECT posterior.context(y, x, z ORDER BY k) AS value, count(*) AS n FROM t)
		SELECT n || CASE WHEN posterior.predict(value, 0.5::float8, 2) OPERATOR(posterior.=)
			(SELECT posterior.predict('c', q) FROM (SELECT 0.5::float8 AS x, 2 AS z) q) THEN ' same' ELSE ' differ' END FROM s \$\$;
	CREATE FUNCTION wait_for(n int) RETURNS void LANGUAGE plpgsql AS \$\$
	BEGIN
		WHILE (SELECT count(*) FROM go) < n LOOP
			PERFORM pg_sleep(0.01);
		END LOOP;
	END \$\$;
});
sub same { return $node->safe_psql('postgres', 'SELECT same()') }
sub state { return $node->safe_psql('postgres', "SELECT $_[0] FROM posterior.stat_contexts WHERE name = 'c'") }

# what the transaction does, what is done while it commits, how many rows that adds
my @cases = (
	['nothing', '', 'INSERT INTO t (x, y) VALUES (1, 1)', 1],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (2, 2);', 'INSERT INTO t (x, y) VALUES (3, 3)', 2],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (4, 4);', 'UPDATE t SET y = y + 1 WHERE k < 10', 1],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (5, 5);', 'DELETE FROM t WHERE k = (SELECT min(k) FROM t)', 0],
	['a write elsewhere', 'INSERT INTO go SELECT FROM t WHERE false;', 'UPDATE t SET y = y + 1 WHERE k < 20', 0],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (6, 6);', 'INSERT INTO t (x, y) VALUES (7, 7); UPDATE t SET y = 8 WHERE x = 6', 2],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (8, 8);',
		'ALTER TABLE t DISABLE TRIGGER USER; UPDATE t SET y = y - 1; ALTER TABLE t ENABLE ALWAYS TRIGGER posterior_note_statement; ALTER TABLE t ENABLE ALWAYS TRIGGER posterior_note_insert; ALTER TABLE t ENABLE REPLICA TRIGGER posterior_note_change', 1],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (9, 9);',
		'DO $$ BEGIN INSERT INTO t (x, y) VALUES (10, 10); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END $$', 1],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (11, 11);', 'TRUNCATE t; INSERT INTO t (x, y) SELECT i, i FROM generate_series(1, 25) i', undef]);

# PostgreSQL itself asserts that no subtransaction is rolled back while the transaction commits; without assertions it can be
if ($node->safe_psql('postgres', 'SHOW debug_assertions') eq 'on')
{
	@cases = grep { $_->[2] !~ /EXCEPTION/ } @cases;
}

my $rows = 30;
my $round = 0;
for my $when ('after', 'before')
{
	if ($when eq 'before')
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_posterior, $library'");
		$node->restart;
	}
	for my $end ('COMMIT', 'PREPARE TRANSACTION')
	{
		for my $case (@cases)
		{
			my ($does, $first, $late, $more) = @$case;
			my $name = lc($end) . " of $does, $when that: $late";
			my $statement = $late =~ s/'/''/gr;
			my ($out, $errors) = ('', '');

			same();
			is(same(), "$rows same", "before the $name");
			# a reader looks while the transaction is about to commit, and one when it has
			$round++;
			my @steps = ('BEGIN', $first, "SELECT late_write('SELECT wait_for($round); $statement; SELECT wait_for(@{[$round + 1]})')",
				$end eq 'COMMIT' ? 'COMMIT' : "PREPARE TRANSACTION 'late'");
			my $writer = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), map { ('-c', $_) } grep { $_ ne '' } @steps ],
				'<', \'', '>', \$out, '2>', \$errors);
			ok($node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query ~ '^(COMMIT|PREPARE)' AND wait_event = 'PgSleep')"), "$name: waits");
			is(same(), "$rows same", "$name: told, not done");
			$node->safe_psql('postgres', 'INSERT INTO go VALUES (1)');
			# a change of the table itself locks readers out
			is(same(), "$rows same", "$name: done, not committed") unless $late =~ /ALTER|TRUNCATE/;
			$round++;
			$node->safe_psql('postgres', 'INSERT INTO go VALUES (1)');
			$writer->finish;
			is($errors, '', "$name: no error");
			if ($end ne 'COMMIT')
			{
				is(same(), "$rows same", "$name: prepared") unless $late =~ /ALTER|TRUNCATE/;
				$node->safe_psql('postgres', "COMMIT PREPARED 'late'");
			}
			$rows = defined $more ? $rows + $more : 25;
			is(same(), "$rows same", "$name: committed");
		}
	}
}

# the maintenance worker hears of it
$node->append_conf('postgresql.conf', "shared_preload_libraries = '$library, pg_posterior'");
$node->restart;
is(same(), "$rows same", 'after a restart');
$node->safe_psql('postgres', "BEGIN; SELECT late_write('INSERT INTO t (x, y) VALUES (1, 1)'); COMMIT");
ok($node->poll_query_until('postgres', "SELECT rows = $rows + 1 FROM posterior.stat_contexts WHERE name = 'c'"), 'what was written late is encoded ahead');
$rows++;
is(same(), "$rows same", 'and right');

# an error while it commits: nothing was done, and nothing is remembered by the session
my ($status, $out, $errors) = $node->psql('postgres', <<'SQL', on_error_stop => 0);
BEGIN;
INSERT INTO t (x, y) VALUES (1, 1);
SELECT late_write('UPDATE t SET y = 5; SELECT 1 / 0');
COMMIT;
SELECT same();
INSERT INTO t (x, y) VALUES (2, 2);
SELECT same();
SQL
like($errors, qr/division by zero/, 'the late write fails');
is($out, "\n$rows same\n" . ($rows + 1) . ' same', 'and with it the transaction, no more');
is(same(), ($rows + 1) . ' same', 'for others as well');

$node->stop;
done_testing();
