# Another extension writes tables while a transaction commits: before, and after the transaction was
# entered in the table's writer log.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Same;
use Test::More;

my $library = "$ENV{TEST_LIBRARIES}/late_writer";
my $node = PostgreSQL::Test::Cluster->new('late');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = '$library, pg_posterior'\nmax_prepared_transactions = 10\n");
$node->start;
$node->safe_psql('postgres', value_setup() . value_rows() . qq{
	CREATE FUNCTION late_write(text) RETURNS void AS '$library' LANGUAGE C STRICT;
	CREATE TABLE go (i int);
	CREATE FUNCTION wait_for(n int) RETURNS void LANGUAGE plpgsql AS \$\$
	BEGIN
		WHILE (SELECT count(*) FROM go) < n LOOP
			PERFORM pg_sleep(0.01);
		END LOOP;
	END \$\$;
});

# The transaction's statement, what is written while it commits, and the number of rows that adds.
my @cases = (
	['nothing', '', 'INSERT INTO t (x, y) VALUES (1, 1)', 1],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (2, 2);', 'INSERT INTO t (x, y) VALUES (3, 3)', 2],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (4, 4);', 'UPDATE t SET y = y + 1 WHERE k < 10', 1],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (5, 5);',
			'DELETE FROM t WHERE k = (SELECT min(k) FROM t)', 0],
	['a write elsewhere', 'INSERT INTO go SELECT FROM t WHERE false;',
			'UPDATE t SET y = y + 1 WHERE k < 20', 0],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (6, 6);',
		'INSERT INTO t (x, y) VALUES (7, 7); UPDATE t SET y = 8 WHERE x = 6', 2],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (8, 8);',
		'ALTER TABLE t DISABLE TRIGGER USER; UPDATE t SET y = y - 1;
			ALTER TABLE t ENABLE ALWAYS TRIGGER posterior_note_statement;
			ALTER TABLE t ENABLE ALWAYS TRIGGER posterior_note_insert;
			ALTER TABLE t ENABLE REPLICA TRIGGER posterior_note_change', 1],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (9, 9);',
		'DO $$ BEGIN INSERT INTO t (x, y) VALUES (10, 10); RAISE division_by_zero; EXCEPTION
			WHEN division_by_zero THEN NULL; END $$', 1],
	['an INSERT', 'INSERT INTO t (x, y) VALUES (11, 11);',
			'TRUNCATE t; INSERT INTO t (x, y) SELECT i, i FROM generate_series(1, 25) i', undef]);

# PostgreSQL asserts that no subtransaction is rolled back while the transaction commits; without
# assertions it can be.
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
		$node->append_conf('postgresql.conf',
			"shared_preload_libraries = 'pg_posterior, $library'");
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

			same($node);
			is(same($node), "$rows same", "before the $name");
			# A reader predicts while the transaction is about to commit, and one after it.
			$round++;
			my @steps = ('BEGIN', $first,
				"SELECT late_write('SELECT wait_for($round); $statement;
					SELECT wait_for(@{[$round + 1]})')",
				$end eq 'COMMIT' ? 'COMMIT' : "PREPARE TRANSACTION 'late'");
			my $writer = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d',
				$node->connstr('postgres'), map { ('-c', $_) } grep { $_ ne '' } @steps ],
				'<', \'', '>', \$out, '2>', \$errors);
			ok($node->poll_query_until('postgres',
						"SELECT EXISTS (SELECT FROM pg_stat_activity
						WHERE query ~ '^(COMMIT|PREPARE)'
				AND wait_event = 'PgSleep')"), "$name: waits");
			is(same($node), "$rows same", "$name: told, not done");
			$node->safe_psql('postgres', 'INSERT INTO go VALUES (1)');
			# A change of the table itself blocks readers.
			is(same($node), "$rows same", "$name: done, not committed")
				unless $late =~ /ALTER|TRUNCATE/;
			$round++;
			$node->safe_psql('postgres', 'INSERT INTO go VALUES (1)');
			$writer->finish;
			is($errors, '', "$name: no error");
			if ($end ne 'COMMIT')
			{
				is(same($node), "$rows same", "$name: prepared") unless $late =~ /ALTER|TRUNCATE/;
				$node->safe_psql('postgres', "COMMIT PREPARED 'late'");
			}
			$rows = defined $more ? $rows + $more : 25;
			is(same($node), "$rows same", "$name: committed");
		}
	}
}

# The maintenance worker is notified.
$node->append_conf('postgresql.conf', "shared_preload_libraries = '$library, pg_posterior'");
$node->restart;
is(same($node), "$rows same", 'after a restart');
$node->safe_psql('postgres',
		"BEGIN; SELECT late_write('INSERT INTO t (x, y) VALUES (1, 1)'); COMMIT");
ok($node->poll_query_until('postgres',
			"SELECT rows = $rows + 1 FROM posterior.stat_contexts WHERE name = 'c'"),
		'what was written late is encoded ahead');
$rows++;
is(same($node), "$rows same", 'and right');

# An error while it commits: no row was written, and the session keeps no note.
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
is(same($node), ($rows + 1) . ' same', 'for others as well');

$node->stop;
done_testing();
