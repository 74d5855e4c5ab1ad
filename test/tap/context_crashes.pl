# Named contexts through kills, crashes and restarts, prepared transactions, a cache that is too
# small, several databases, and dumps.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Restart;
use Same;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('contexts');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	max_prepared_transactions = 10
	restart_after_crash = on
	wal_level = replica
	max_wal_senders = 2
	posterior.cache_size = '16MB'
});
$node->start;

my $setup = value_setup() . value_rows();
$node->safe_psql('postgres', $setup);

is(same($node), '30 same', 'right in the first session');
$node->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
is(same($node), '30 same', 'right in the second');
is(same($node), '30 same', 'right in the third');
cmp_ok(counter($node, 'skips'), '>', 0, 'without reading the table');
$node->safe_psql('postgres', 'INSERT INTO t (x, y) VALUES (1, 1)');
is(same($node), '31 same', 'right after an INSERT of another session');
cmp_ok(counter($node, 'deltas'), '>', 0, 'by reading the new row only');

# New rows are fetched by their places, however small the table was in the session's first fetch.
{
	my $scans = "SELECT seq_scan + coalesce(idx_scan, 0) FROM pg_stat_user_tables
			WHERE relname = 't'";
	$node->safe_psql('postgres', 'INSERT INTO t (x, y) VALUES (1, 1)');
	$node->safe_psql('postgres', 'ANALYZE t');
	is(same($node), '32 same', 'another row');
	# a session counts its scans when it ends
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity
		WHERE backend_type = 'client backend'}) or die 'other sessions stay';
	my $before = $node->safe_psql('postgres', $scans);
	$node->safe_psql('postgres',
			join(';', ("INSERT INTO t (x, y) VALUES (1, 1)",
				"SELECT posterior.predict('c', q) FROM (SELECT 0.5::float8 AS x, 2 AS z) q") x 12));
	ok($node->poll_query_until('postgres',
				"SELECT n_tup_ins >= 44 FROM pg_stat_user_tables WHERE relname = 't'"),
			'statistics have come');
	cmp_ok($node->safe_psql('postgres', $scans), '<', $before + 8, 'places, not scans');
	$node->safe_psql('postgres', 'DELETE FROM t WHERE k > 31');
	is(same($node), '31 same', 'and right when they are gone');
}

# The maintenance worker encodes rows ahead of the next prediction: the number of encoded rows
# changes by encoding only.
$node->safe_psql('postgres', 'INSERT INTO t (x, y) SELECT 1, 1 FROM generate_series(1, 5)');
ok($node->poll_query_until('postgres',
			"SELECT rows = 36 FROM posterior.stat_contexts WHERE name = 'c'"), 'encoded ahead');
is(same($node), '36 same', 'and right');
$node->safe_psql('postgres', 'BEGIN; INSERT INTO t (x, y) VALUES (1, 1);
			SELECT pg_sleep(1.5); COMMIT');
ok($node->poll_query_until('postgres',
			"SELECT rows = 37 FROM posterior.stat_contexts WHERE name = 'c'"),
		'also when the commit comes late');

# Backends that write and predict are killed: the server restarts each time, and its cache is empty.
for my $statement (
	'SELECT posterior.predict(\'c\', q)
			FROM (SELECT g::float8 AS x, 2 AS z FROM generate_series(1, 100000000) g) q',
	'DO $$ BEGIN FOR i IN 1 .. 100000000 LOOP INSERT INTO t (x, y)
		VALUES (1, 1); PERFORM posterior.warm_context(\'c\'); END LOOP; END $$',
	'DO $$ BEGIN FOR i IN 1 .. 100000000
		LOOP PERFORM posterior.refresh_context(
		\'c\'); PERFORM posterior.warm_context(\'c\'); END LOOP; END $$')
{
	my $victim = $node->background_psql_or_start($statement);
	my $runs = q{FROM pg_stat_activity WHERE application_name = 'victim' AND state = 'active'};
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 $runs"), 'the victim runs');
	my $pid = $node->safe_psql('postgres', "SELECT pid $runs");
	# The victim has pinned an encoding when it is killed.
	select(undef, undef, undef, 0.3);
	my $logged = -s $node->logfile;
	kill 'KILL', $pid;
	$victim->finish;
	wait_for_restart($node, $logged);
	like(same($node), qr/^\d+ same$/, 'right after a kill');
}

# The maintenance worker is killed in the middle of encoding.
{
	my $before = same($node);
	my $logged = -s $node->logfile;
	$node->safe_psql('postgres', qq{
		CREATE TABLE many (x float8, y float8);
		SELECT posterior.create_context('many', 'many', 'y', features => '{x}', model => 'toy');
		INSERT INTO many SELECT i, sin(i) FROM generate_series(1, 100) i;
		SELECT posterior.warm_context('many')});
	my ($status, $out, $err) = $node->psql('postgres', q{
		INSERT INTO many SELECT i, sin(i) FROM generate_series(1, 19000) i;
		DO $$
		DECLARE
			worker int;
		BEGIN
			FOR i IN 1 .. 60000 LOOP
				SELECT p.pid INTO worker FROM posterior.stat_progress p
					JOIN pg_stat_activity USING (pid) WHERE backend_type = 'posterior worker'
					AND done > 2000;
				EXIT WHEN worker IS NOT NULL;
				-- it may have been faster than this, and encodes changed rows anew
				IF i % 5000 = 0 THEN
					UPDATE many SET y = -y;
					COMMIT;
				END IF;
				PERFORM pg_sleep(0.001), pg_stat_clear_snapshot();
			END LOOP;
			IF worker IS NULL THEN
				RAISE 'the worker does not encode';
			END IF;
			RAISE NOTICE 'the worker is at it';
			EXECUTE format('COPY (SELECT WHERE false) TO PROGRAM ''kill -KILL %s''', worker);
		END $$});
	like($err, qr/the worker is at it/, 'the worker is killed while it encodes');
	wait_for_restart($node, $logged);
	is(same($node), $before, 'right after that');
	$node->safe_psql('postgres', "SELECT posterior.warm_context('many')");
	is($node->safe_psql('postgres', "SELECT rows FROM posterior.stat_contexts WHERE name = 'many'"),
			'19100', 'and the next reader encodes what it had begun');
	$node->safe_psql('postgres', 'DROP TABLE many');
}

# Terminated backends release their pins: all of the cache can be evicted.
{
	my $before = $node->safe_psql('postgres', 'SELECT count(*) FROM t');
	for (1 .. 5)
	{
		my $victim = $node->background_psql_or_start("SELECT posterior.predict('c', q)
					FROM (SELECT g::float8 AS x, 2 AS z FROM generate_series(1, 100000000) g) q");
		$node->poll_query_until('postgres',
				"SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity
					WHERE application_name = 'victim' AND state = 'active'")
			or die 'the victim does not run';
		$victim->finish;
	}
	is(same($node), "$before same", 'right after backends were terminated');
}

# Committed in the WAL, and waiting for a synchronous standby that does not exist: still running for
# all other sessions.
{
	my $n = $node->safe_psql('postgres', 'SELECT count(*) FROM t');
	is(same($node), "$n same", 'before the wait');
	$node->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
	$node->reload;
	my $waits = "pg_stat_activity WHERE wait_event = 'SyncRep'";
	# Commits wait when the checkpointer has read the setting: others go on until one does.
	my $probe = $node->background_psql_or_start('DO $$ BEGIN LOOP INSERT INTO other VALUES (1);
		COMMIT; END LOOP; END $$');
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM $waits")
		or die 'no commit waits';
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM $waits");
	$probe->finish;
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM $waits") or die 'it does not end';
	my $waiting = $node->background_psql_or_start('SET synchronous_commit = on; INSERT INTO t (x, y)
		VALUES (1, 1)');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM $waits"),
			'a commit waits for a standby');
	is(same($node), "$n same", 'its row is not seen');
	is(same($node), "$n same", 'nor later');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
	$node->reload;
	$waiting->finish;
	is(same($node), ($n + 1) . ' same', 'then it is');
}

# Prepared transactions outlive the shared memory with their writer logs.
$node->safe_psql('postgres', "BEGIN; INSERT INTO t (x, y)
	VALUES (2, 2); PREPARE TRANSACTION 'one'");
$node->safe_psql('postgres', "BEGIN; INSERT INTO t (x, y)
	VALUES (3, 3); PREPARE TRANSACTION 'two'");
my $n = $node->safe_psql('postgres', 'SELECT count(*) FROM t');
is(same($node), "$n same", 'prepared rows are not seen');
$node->stop('immediate');
$node->start;
is(same($node), "$n same", 'nor after a crash');
$node->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
is(same($node), "$n same", 'and a proof is published');
is(same($node), "$n same", 'and used');
$node->safe_psql('postgres', "COMMIT PREPARED 'one'");
is(same($node), ($n + 1) . ' same', 'a committed one is seen');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'two'");
is(same($node), ($n + 1) . ' same', 'a rolled back one is not');
$node->restart;
is(same($node), ($n + 1) . ' same', 'right after a restart');

# Another database with the same names.
$node->safe_psql('postgres', 'CREATE DATABASE twin');
$node->safe_psql('twin', $setup);
is(same($node, 'twin'), '30 same', 'another database has its own');
is(same($node), ($n + 1) . ' same', 'and so has this one');

# Dump and restore.
my $dump = $node->data_dir . '/../dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('twin') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d',
	$node->connstr('copy') ], 'restore');
is($node->safe_psql('copy', 'SELECT name, owner, relation, target, features, order_by, model,
			maintain FROM posterior.contexts'),
	$node->safe_psql('twin', 'SELECT name, owner, relation, target, features, order_by, model,
				maintain FROM posterior.contexts'), 'the context is in the copy');
is($node->safe_psql('copy', "SELECT string_agg(tgname || tgenabled::text, ' ' ORDER BY tgname)
			FROM pg_trigger WHERE tgrelid = 't'::regclass"),
	'posterior_note_changeR posterior_note_insertA posterior_note_statementA', 'and its triggers');
is(same($node, 'copy'), '30 same', 'and answers');
$node->safe_psql('copy', 'INSERT INTO t (x, y) VALUES (1, 1)');
is(same($node, 'copy'), '31 same', 'and grows');
$node->safe_psql('copy', 'DROP FUNCTION same; DROP EXTENSION pg_posterior CASCADE');
is($node->safe_psql('copy', "SELECT count(*) FROM pg_trigger WHERE tgrelid = 't'::regclass"), '0',
		'DROP EXTENSION takes the triggers');
$node->safe_psql('copy', 'INSERT INTO t (x, y) VALUES (1, 1)');

# A cache with room for almost nothing: slower, never wrong.
$node->append_conf('postgresql.conf', "posterior.cache_size = '64kB'\n");
$node->restart;
is(same($node), ($n + 1) . ' same', 'right with a cache that is too small for the context');
is($node->safe_psql('postgres', "INSERT INTO t (x, y) SELECT i, i FROM generate_series(1, 3000) i;
			SELECT same()"), ($n + 3001) . ' same', 'right with many rows');
is(same($node), ($n + 3001) . ' same', 'and again');
cmp_ok($node->safe_psql('postgres', 'SELECT private FROM posterior.stat_cache()'), '>', 0,
		'computed privately');

# Without preloading the same statements work, each session for itself.
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = ''\nposterior.cache_size = '16MB'\n");
$node->restart;
is(same($node), ($n + 3001) . ' same', 'right without preloading');
$node->safe_psql('postgres', 'INSERT INTO t (x, y) VALUES (1, 1)');
is(same($node), ($n + 3002) . ' same', 'also after an INSERT');
is($node->safe_psql('postgres', 'SELECT shared FROM posterior.stat_cache()'), 'f',
		'which the view says');
$node->stop;
done_testing();

# Start psql with one statement in the background, as application "victim".
package PostgreSQL::Test::Cluster;
sub background_psql_or_start
{
	my ($self, $statement) = @_;
	local $ENV{PGAPPNAME} = 'victim';
	my ($in, $out, $err) = ('', '', '');
	my $run = IPC::Run::start([ 'psql', '-XqAt', '-d', $self->connstr('postgres'), '-c',
		$statement ], \$in, '>', '/dev/null', '2>', \$err);
	return $run;
}
