# While rows are encoded, by the background worker or by warm_context(), the table is not locked: it
# can be altered, rewritten, truncated and dropped. The encoding of the earlier rows answers nothing
# afterwards. The encoding process is stopped by a signal, so that nothing depends on its speed.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use StopPhase;
use Test::More;

my $node = encoding_node('locks_of_encoding', q{lock_timeout = '60s'});
$node->safe_psql('postgres', q{
	CREATE FUNCTION answer() RETURNS text STABLE LANGUAGE sql AS $$
		SELECT posterior.predict('t', q)::text FROM (SELECT 0.5::float8 AS x) q $$});

# Stops the encoding process; returns its pid. One that was too fast is made to encode again.
sub stop_encoding
{
	my ($type, $session) = @_;
	my $pid = stop_phase($node, $type, 'encoding prefix', sub {
		$node->safe_psql('postgres', 'UPDATE t SET y = y + 1');
		encode($session) if defined $session;
	});
	pass("a $type is stopped while it encodes");
	return $pid;
}

# A session begins to encode.
sub encode
{
	my ($session) = @_;
	$session->{in} .= "SELECT posterior.warm_context('t');\n";
	$session->{run}->pump_nb while length $session->{in};
	return;
}

# A table with a context, predicted from while it was small.
sub make_table
{
	$node->safe_psql('postgres', q{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (i int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, x float8, y float8);
		INSERT INTO t (x, y) SELECT random(), random() FROM generate_series(1, 20);
		SELECT posterior.create_context('t', 't', 'y', features => '{x}', order_by => 'i',
				model => 'tabular_small');
		SELECT posterior.warm_context('t');
		INSERT INTO t (x, y) SELECT random(), random() FROM generate_series(1, 400)});
}

sub delay
{
	$node->append_conf('postgresql.conf', "posterior.maintenance_delay = $_[0]");
	$node->reload;
}

my $locks = q{SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND pid = };
my @changes = (
	'ALTER TABLE t ADD COLUMN z int',
	'ALTER TABLE t ALTER COLUMN y TYPE float8 USING y + 1',
	'TRUNCATE t; INSERT INTO t (x, y) SELECT i, i FROM generate_series(1, 30) i',
	'DELETE FROM t WHERE i % 2 = 0; VACUUM FULL t',
	'BEGIN; ALTER TABLE t DISABLE TRIGGER ALL; UPDATE t SET y = y + 1;
		ALTER TABLE t ENABLE ALWAYS TRIGGER posterior_note_statement;
		ALTER TABLE t ENABLE ALWAYS TRIGGER posterior_note_insert;
		ALTER TABLE t ENABLE REPLICA TRIGGER posterior_note_change; COMMIT');

# Whether the cache answers as the rows do.
sub is_true
{
	my ($what) = @_;
	my $cached = $node->safe_psql('postgres', 'SELECT answer()');
	is($cached, $node->safe_psql('postgres', q{SET posterior.cache = off; SELECT answer()}),
			"$what: the answer is that of the rows");
}

for my $change (@changes)
{
	my $name = $change =~ s/\s+/ /gr;

	make_table();
	delay(1);
	my $pid = stop_encoding('posterior worker');
	is($node->safe_psql('postgres', "$locks $pid"), '0', 'it holds no lock on the table');
	is($node->safe_psql('postgres',
				"SELECT backend_xmin IS NULL FROM pg_stat_activity WHERE pid = $pid"), 't',
			'and no snapshot');
	delay(-1);
	is($node->psql('postgres', $change), 0, "beside the worker: $name");
	kill 'CONT', $pid;
	$node->poll_query_until('postgres',
			"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid") or die 'the worker stays';
	is_true('after it');
}

for my $begin ('', 'BEGIN')
{
	# Locks of other statements of the transaction are not tested here, and are the same for all
	# changes.
	for my $change ($begin eq '' ? @changes : $changes[0])
	{
		my $name = $change =~ s/\s+/ /gr;

		make_table();
		my $s = session($node);
		ask($s, $begin eq '' ? 'SELECT 1' : $begin);
		encode($s);
		my $pid = stop_encoding('client backend', $s);
		is($node->safe_psql('postgres', "$locks $pid"), '0', 'it holds no lock on the table');
		is($node->psql('postgres', $change), 0, "beside warm_context: $name");
		kill 'CONT', $pid;
		like(ask($s, $begin eq '' ? 'SELECT 1' : 'COMMIT'), qr/^420/,
				'which says how many rows it has encoded');
		leave($s);
		is_true('after it');
	}
}

# Neither the change nor the encoding waits for the other.
make_table();
delay(1);
my $pid = stop_encoding('posterior worker');
is($node->psql('postgres', 'DROP TABLE t'), 0, 'the table is dropped beside the worker');
kill 'CONT', $pid;
ok($node->poll_query_until('postgres',
			"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid"), 'which ends');
delay(-1);

# An error during reading, and one after it, leave the transaction as it was.
make_table();
my $s = session($node);
like(ask($s, q{DO $$ BEGIN PERFORM posterior.warm_context('none');
	EXCEPTION WHEN undefined_object THEN RAISE NOTICE 'caught';
	END $$}), qr/caught/, 'an error can be caught');
like(ask($s, q{BEGIN; SELECT posterior.warm_context('none')}), qr/does not exist/,
		'one that is not');
like(ask($s, 'SELECT 1'), qr/aborted/, 'aborts the transaction');
like(ask($s, 'ROLLBACK; SELECT 17'), qr/17/, 'which can be rolled back');
my $backend = ask($s, 'SELECT pg_backend_pid()');
encode($s);
$pid = stop_encoding('client backend', $s);
is($pid, $backend, 'it is cancelled while it encodes');
kill 'INT', $pid;
kill 'CONT', $pid;
like(ask($s, 'SELECT 18'), qr/canceling statement.*18/s, 'and goes on');
is(ask($s, q{SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()
			AND relation = 't'::regclass}), '0', 'without a lock');
# Own rows stay known in a transaction that has written.
is(ask($s, q{BEGIN; INSERT INTO t (x, y) VALUES (1, 1); SELECT posterior.warm_context('t');
			ROLLBACK}), '421', 'own rows are counted');
leave($s);
$node->stop;
ok(!$node->log_contains('WARNING|PANIC|TRAP'), 'the log is quiet');
done_testing();
