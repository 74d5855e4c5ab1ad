# Transactions are held while they commit, after they entered the writer log and before they become
# visible: two at once become visible in the order of their commits, not of their entries; one of
# them fails; and one is killed there.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Restart;
use Same;
use Session;
use Test::More;

my $models = $ENV{TEST_MODELS};
# Loaded before pg_posterior, this library's callback runs after that of pg_posterior.
my $library = "$ENV{TEST_LIBRARIES}/late_writer";
my $node = PostgreSQL::Test::Cluster->new('between');
$node->init;
$node->append_conf('postgresql.conf', qq{
	shared_preload_libraries = '$library, pg_posterior'
	posterior.maintenance_delay = -1
	max_prepared_transactions = 2
	restart_after_crash = on
});
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	CREATE FUNCTION late_write(text) RETURNS void AS '$library' LANGUAGE C STRICT;
	SELECT posterior.load_model('causal', '$models/packed_causal.safetensors');
	CREATE TABLE t (k int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, x float8,
			z int NOT NULL DEFAULT 1, y float8);
	CREATE TABLE other (i int);
	INSERT INTO t (x, y) SELECT i / 10.0, sin(i) FROM generate_series(1, 30) i;
	SELECT posterior.create_context('c', 't', 'y', features => '{x,z}', order_by => 'k',
			model => 'causal');
	CREATE FUNCTION scratch() RETURNS posterior.distribution STABLE
		LANGUAGE plpgsql SET posterior.model = 'causal' SET posterior.cache = off AS \$\$
	BEGIN
		RETURN posterior.predict((SELECT posterior.context(y, x, z ORDER BY k) FROM t),
				0.5::float8, 2);
	END \$\$;
	CREATE FUNCTION same() RETURNS text STABLE LANGUAGE sql AS \$\$
		SELECT (SELECT count(*) FROM t) || ' ' || coalesce((SELECT min(k) FROM t WHERE k > 30), 0)
			|| CASE WHEN scratch() OPERATOR(posterior.=)
			(SELECT posterior.predict('c', q) FROM (SELECT 0.5::float8 AS x, 2 AS z) q) THEN ' same'
				ELSE ' differ' END \$\$;
});

# A session that executes a statement and waits in its COMMIT (or other end) until the advisory lock
# of this number is free, and then fails if $fails.
sub hold
{
	my ($number, $statement, $fails, $end) = @_;
	my $writer = { out => '', errors => '', number => $number };
	$end //= 'COMMIT';
	my $then = $fails ? '; SELECT 1 / 0' : '';
	$writer->{run} = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'),
		map { ('-c', $_) } ('BEGIN', $statement,
		"SELECT late_write('SELECT pg_advisory_xact_lock_shared($number)$then')", $end) ], '<', \'',
			'>', \$writer->{out}, '2>', \$writer->{errors});
	ok($node->poll_query_until('postgres',
				"SELECT EXISTS (SELECT FROM pg_stat_activity a JOIN pg_locks l USING (pid)
		WHERE query = \$\$$end\$\$ AND locktype = 'advisory' AND objid = $number
			AND NOT granted)"), "writer $number has told and not committed");
	return $writer;
}
# One session keeps the locks, another has a snapshot of its own.
my $keeper = session($node);
sub let
{
	my ($writer) = @_;
	ask($keeper, "SELECT pg_advisory_unlock($writer->{number})");
	$writer->{run}->finish;
	return $writer->{errors};
}

my $insert = 'INSERT INTO t (x, y) VALUES (1, %d)';
my $fresh = 'DELETE FROM t WHERE k > 30; ALTER TABLE t ALTER COLUMN k RESTART WITH 31';
my @cases = (
	# The statement that enters the log first, the second one, which of them commits first, whether
	# the first fails, and the number of rows after each end.
	['two INSERTs, in the order of telling', $insert, $insert, 1, 0, '31 31', '32 31'],
	['two INSERTs, in the other order', $insert, $insert, 2, 0, '31 32', '32 31'],
	['INSERT and UPDATE', $insert, 'UPDATE t SET y = %d WHERE k = 7', 2, 0, '30 0', '31 31'],
	['DELETE and INSERT', 'DELETE FROM t WHERE k = %d + 1', $insert, 2, 0, '31 31', '30 31'],
	['DELETE and INSERT, in the order of telling', 'DELETE FROM t WHERE k = %d + 3', $insert, 1, 0,
		'28 0', '29 31'],
	['two INSERTs, and the first fails', $insert, $insert, 1, 1, '28 0', '29 32'],
	['two INSERTs, and the first fails after the second', $insert, $insert, 2, 1, '29 32', '29 32'],
	['a DELETE that fails, and an INSERT', 'DELETE FROM t WHERE k < 20 + %d', $insert, 1, 1,
		'28 0', '29 31']);
for my $case (@cases)
{
	my ($name, $first, $second, $order, $fails, $then, $finally) = @$case;
	$node->safe_psql('postgres', $fresh);
	my $before = same($node);
	$node->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
	like(same($node), qr/ same$/, "$name: before");
	ask($keeper, 'SELECT pg_advisory_lock(1), pg_advisory_lock(2)');
	my $one = hold(1, sprintf($first, 1), $fails);
	is(same($node), $before, "$name: the first has told");
	my $two = hold(2, sprintf($second, 2), 0);
	# A prediction here publishes a proof for later readers, and theirs for others.
	$node->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
	is(same($node), $before, "$name: both have told");
	is(same($node), $before, "$name: and it is proven");
	my $old = session($node);
	is(ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT same()'), $before,
			"$name: a snapshot from before both");
	my $errors = let($order == 1 ? $one : $two);
	like($errors, $fails && $order == 1 ? qr/division by zero/ : qr/^$/, "$name: the end of one");
	is(same($node), "$then same", "$name: one is seen");
	my $middle = session($node);
	is(ask($middle, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT same()'), "$then same",
			"$name: a snapshot from between");
	is(ask($old, 'SELECT same()'), $before, "$name: none is seen by the old one");
	is(same($node), "$then same", "$name: and again");
	$errors = let($order == 1 ? $two : $one);
	like($errors, $fails && $order == 2 ? qr/division by zero/ : qr/^$/,
		"$name: the end of the other");
	is(ask($middle, 'SELECT same()'), "$then same", "$name: the snapshot from between stays");
	is(same($node), "$finally same", "$name: both are seen");
	is(ask($old, 'SELECT same()'), $before, "$name: the old snapshot stays");
	is(same($node), "$finally same", "$name: and again");
	for my $s ($old, $middle)
	{
		leave($s);
	}
}
cmp_ok(counter($node, 'skips'), '>', 0, 'readers read nothing');
cmp_ok(counter($node, 'deltas'), '>', 0, 'or new rows only');

# Places recorded by a failed transaction are reused by another one's rows.
{
	$node->safe_psql('postgres', $fresh);
	$node->safe_psql('postgres', 'VACUUM t');
	my $before = same($node);
	ask($keeper, 'SELECT pg_advisory_lock(1)');
	my $one = hold(1, sprintf($insert, 1) . ' RETURNING ctid', 1);
	is(same($node), $before, 'an INSERT that will fail');
	like(let($one), qr/division by zero/, 'it fails');
	my $place = $one->{out} =~ /(\(\d+,\d+\))/ ? $1 : '';
	$node->safe_psql('postgres', 'VACUUM t');
	is($node->safe_psql('postgres', 'INSERT INTO t (x, y) VALUES (1, 2) RETURNING ctid'), $place,
		'another row lies there');
	like(same($node), qr/ 32 same$/, 'and is seen');
	like(same($node), qr/ 32 same$/, 'once');
}

leave($keeper);

# Killed there, or in PREPARE: the log's entry is gone with the shared memory, and no row was
# written.
my $update = 'UPDATE t SET y = 9 WHERE k = 7';
for my $case ((map { [$_, 'COMMIT'] } sprintf($insert, 3), $update, 'TRUNCATE t',
	'ALTER TABLE t DISABLE TRIGGER ALL'),
	(map { [$_, "PREPARE TRANSACTION 'p'"] } sprintf($insert, 3), $update))
{
	my ($statement, $end) = @$case;
	my $before = same($node);
	$keeper = session($node);
	ask($keeper, 'SELECT pg_advisory_lock(1)');
	my $one = hold(1, $statement, 0, $end);
	my $pid = $node->safe_psql('postgres',
			"SELECT pid FROM pg_stat_activity WHERE query = \$\$$end\$\$
				AND wait_event = 'advisory'");
	my $logged = -s $node->logfile;
	is(kill('KILL', $pid), 1, "killed in $end: $statement");
	$_->{run}->finish for $one, $keeper;
	wait_for_restart($node, $logged);
	is(same($node), $before, "$statement: nothing was done") for 1 .. 2;
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts'), '0',
			"$statement: nothing is prepared");
	$node->safe_psql('postgres', sprintf($insert, 4));
	like(same($node), qr/ same$/, "$statement: and the next one is seen") for 1 .. 2;
}

# Prepared before PostgreSQL restarts: the new writer log has no entry of the transaction that
# commits afterwards.
for my $statement (sprintf($insert, 5), 'DELETE FROM t WHERE k = 8')
{
	my $before = same($node);
	$node->safe_psql('postgres', "BEGIN; $statement; PREPARE TRANSACTION 'p'");
	is(same($node), $before, "$statement: prepared");
	$keeper = session($node);
	my $pid = ask($keeper, 'SELECT pg_backend_pid()');
	my $logged = -s $node->logfile;
	is(kill('KILL', $pid), 1, 'a backend is killed');
	$keeper->{run}->finish;
	wait_for_restart($node, $logged);
	is(same($node), $before, "$statement: and not committed") for 1 .. 2;
	$node->safe_psql('postgres', "COMMIT PREPARED 'p'");
	my $after = same($node);
	like($after, qr/ same$/, "$statement: committed");
	isnt($after, $before, "$statement: and seen");
	is(same($node), $after, "$statement: and again");
}
$node->stop;
done_testing();
