# Named contexts through kills, crashes and restarts, prepared transactions, a cache that is too small, several databases, and dumps.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Restart;
use Test::More;

my $models = $ENV{TEST_MODELS};
my $node = PostgreSQL::Test::Cluster->new('contexts');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_posterior'\nmax_prepared_transactions = 10\nrestart_after_crash = on\nwal_level = replica\nmax_wal_senders = 2\nposterior.cache_size = '16MB'\n");
$node->start;

my $setup = qq{
	CREATE EXTENSION pg_posterior;
	SELECT posterior.load_model('causal', '$models/packed_causal.safetensors');
	CREATE TABLE t (k int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, x float8, z int NOT NULL DEFAULT 1, y float8);
	CREATE TABLE other (i int);
	INSERT INTO t (x, y) SELECT i / 10.0, sin(i) FROM generate_series(1, 30) i;
	SELECT posterior.create_context('c', 't', 'y', features => '{x,z}', order_by => 'k', model => 'causal');
	CREATE FUNCTION same() RETURNS text STABLE LANGUAGE sql SET posterior.model = 'causal' AS \$\$
		WITH s AS MATERIALIZED (SELECT posterior.context(y, x, z ORDER BY k) AS value, count(*) AS n FROM t)
		SELECT n || CASE WHEN posterior.predict(value, 0.5::float8, 2) OPERATOR(posterior.=)
			(SELECT posterior.predict('c', q) FROM (SELECT 0.5::float8 AS x, 2 AS z) q) THEN ' same' ELSE ' differ' END FROM s \$\$;
};
$node->safe_psql('postgres', $setup);
sub same { return $node->safe_psql($_[1] // 'postgres', 'SELECT same()') }
sub state { return $node->safe_psql('postgres', "SELECT $_[0] FROM posterior.stat_contexts WHERE name = 'c'") }

is(same(), '30 same', 'right in the first session');
$node->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
is(same(), '30 same', 'right in the second');
is(same(), '30 same', 'right in the third');
cmp_ok(state('skips'), '>', 0, 'without reading the table');
$node->safe_psql('postgres', 'INSERT INTO t (x, y) VALUES (1, 1)');
is(same(), '31 same', 'right after an INSERT of another session');
cmp_ok(state('deltas'), '>', 0, 'by reading the new row only');

# new rows are fetched by their places, however small the table was when a session began to do so
{
	my $scans = "SELECT seq_scan + coalesce(idx_scan, 0) FROM pg_stat_user_tables WHERE relname = 't'";
	$node->safe_psql('postgres', 'INSERT INTO t (x, y) VALUES (1, 1)');
	$node->safe_psql('postgres', 'ANALYZE t');
	is(same(), '32 same', 'another row');
	my $before = $node->safe_psql('postgres', $scans);
	$node->safe_psql('postgres', join(';', ("INSERT INTO t (x, y) VALUES (1, 1)", "SELECT posterior.predict('c', q) FROM (SELECT 0.5::float8 AS x, 2 AS z) q") x 12));
	ok($node->poll_query_until('postgres', "SELECT n_tup_ins >= 44 FROM pg_stat_user_tables WHERE relname = 't'"), 'statistics have come');
	cmp_ok($node->safe_psql('postgres', $scans), '<', $before + 8, 'places, not scans');
	$node->safe_psql('postgres', 'DELETE FROM t WHERE k > 31');
	is(same(), '31 same', 'and right when they are gone');
}

# the maintenance worker encodes what nobody has asked for yet: the size of the encoding changes only when somebody encodes
$node->safe_psql('postgres', 'INSERT INTO t (x, y) SELECT 1, 1 FROM generate_series(1, 5)');
ok($node->poll_query_until('postgres', "SELECT rows = 36 FROM posterior.stat_contexts WHERE name = 'c'"), 'encoded ahead');
is(same(), '36 same', 'and right');
$node->safe_psql('postgres', 'BEGIN; INSERT INTO t (x, y) VALUES (1, 1); SELECT pg_sleep(1.5); COMMIT');
ok($node->poll_query_until('postgres', "SELECT rows = 37 FROM posterior.stat_contexts WHERE name = 'c'"), 'also when the commit comes late');

# many kills of backends that write and ask: the server restarts each time, and forgets what it had encoded
for my $statement (
	'SELECT posterior.predict(\'c\', q) FROM (SELECT g::float8 AS x, 2 AS z FROM generate_series(1, 100000000) g) q',
	'DO $$ BEGIN FOR i IN 1 .. 100000000 LOOP INSERT INTO t (x, y) VALUES (1, 1); PERFORM posterior.warm_context(\'c\'); END LOOP; END $$',
	'DO $$ BEGIN FOR i IN 1 .. 100000000 LOOP PERFORM posterior.refresh_context(\'c\'); PERFORM posterior.warm_context(\'c\'); END LOOP; END $$')
{
	my $victim = $node->background_psql_or_start($statement);
	my $pid;
	for (1 .. 100)
	{
		$pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'victim' AND state = 'active'");
		last if $pid;
		select(undef, undef, undef, 0.1);
	}
	select(undef, undef, undef, 0.3);
	# an orderly end first: nothing restarts, nothing stays pinned
	ok($pid, 'the victim runs');
	my $logged = -s $node->logfile;
	kill 'KILL', $pid;
	$victim->finish;
	wait_for_restart($node, $logged);
	like(same(), qr/^\d+ same$/, 'right after a kill');
}

# the maintenance worker, in the middle of what it encodes
{
	my $before = same();
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
				SELECT p.pid INTO worker FROM posterior.stat_progress p JOIN pg_stat_activity USING (pid) WHERE backend_type = 'posterior worker' AND done > 2000;
				EXIT WHEN worker IS NOT NULL;
				PERFORM pg_sleep(0.001), pg_stat_clear_snapshot();
			END LOOP;
			IF worker IS NULL THEN
				RAISE 'the worker does not encode';
			END IF;
			RAISE NOTICE 'the worker is at it';
			EXECUTE format('COPY (SELECT) TO PROGRAM ''kill -KILL %s''', worker);
		END $$});
	like($err, qr/the worker is at it/, 'the worker is killed while it encodes');
	wait_for_restart($node, $logged);
	is(same(), $before, 'right after that');
	$node->safe_psql('postgres', "SELECT posterior.warm_context('many')");
	is($node->safe_psql('postgres', "SELECT rows FROM posterior.stat_contexts WHERE name = 'many'"), '19100', 'and what it had begun is encoded by who asks');
	$node->safe_psql('postgres', 'DROP TABLE many');
}

# terminated backends let go of what they read: all of the cache can be evicted
{
	my $before = $node->safe_psql('postgres', 'SELECT count(*) FROM t');
	for (1 .. 5)
	{
		my $victim = $node->background_psql_or_start("SELECT posterior.predict('c', q) FROM (SELECT g::float8 AS x, 2 AS z FROM generate_series(1, 100000000) g) q");
		for (1 .. 100)
		{
			last if $node->safe_psql('postgres', "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'victim' AND state = 'active'");
			select(undef, undef, undef, 0.1);
		}
		$victim->finish;
	}
	is(same(), "$before same", 'right after backends were terminated');
}

# committed in the log, and waiting for a standby that nobody has: still running for everybody else
{
	my $n = $node->safe_psql('postgres', 'SELECT count(*) FROM t');
	is(same(), "$n same", 'before the wait');
	$node->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
	$node->reload;
	my $waiting = $node->background_psql_or_start('SET synchronous_commit = on; INSERT INTO t (x, y) VALUES (1, 1)');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"), 'a commit waits for a standby');
	is(same(), "$n same", 'its row is not seen');
	is(same(), "$n same", 'nor later');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
	$node->reload;
	$waiting->finish;
	is(same(), ($n + 1) . ' same', 'then it is');
}

# prepared transactions outlive the shared memory that knew of them
$node->safe_psql('postgres', "BEGIN; INSERT INTO t (x, y) VALUES (2, 2); PREPARE TRANSACTION 'one'");
$node->safe_psql('postgres', "BEGIN; INSERT INTO t (x, y) VALUES (3, 3); PREPARE TRANSACTION 'two'");
my $n = $node->safe_psql('postgres', 'SELECT count(*) FROM t');
is(same(), "$n same", 'prepared rows are not seen');
$node->stop('immediate');
$node->start;
is(same(), "$n same", 'nor after a crash');
$node->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
is(same(), "$n same", 'and a proof is published');
is(same(), "$n same", 'and used');
$node->safe_psql('postgres', "COMMIT PREPARED 'one'");
is(same(), ($n + 1) . ' same', 'a committed one is seen');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'two'");
is(same(), ($n + 1) . ' same', 'a rolled back one is not');
$node->restart;
is(same(), ($n + 1) . ' same', 'right after a restart');

# another database with the same names
$node->safe_psql('postgres', 'CREATE DATABASE twin');
$node->safe_psql('twin', $setup);
is(same('same', 'twin'), '30 same', 'another database has its own');
is(same(), ($n + 1) . ' same', 'and so has this one');

# dump and restore
my $dump = $node->data_dir . '/../dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('twin') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('copy') ], 'restore');
is($node->safe_psql('copy', 'SELECT name, owner, relation, target, features, order_by, model, maintain FROM posterior.contexts'),
	$node->safe_psql('twin', 'SELECT name, owner, relation, target, features, order_by, model, maintain FROM posterior.contexts'), 'the context is in the copy');
is($node->safe_psql('copy', "SELECT string_agg(tgname || tgenabled::text, ' ' ORDER BY tgname) FROM pg_trigger WHERE tgrelid = 't'::regclass"),
	'posterior_note_changeR posterior_note_insertA posterior_note_statementA', 'and its triggers');
is(same('same', 'copy'), '30 same', 'and answers');
$node->safe_psql('copy', 'INSERT INTO t (x, y) VALUES (1, 1)');
is(same('same', 'copy'), '31 same', 'and grows');
$node->safe_psql('copy', 'DROP FUNCTION same; DROP EXTENSION pg_posterior CASCADE');
is($node->safe_psql('copy', "SELECT count(*) FROM pg_trigger WHERE tgrelid = 't'::regclass"), '0', 'DROP EXTENSION takes the triggers');
$node->safe_psql('copy', 'INSERT INTO t (x, y) VALUES (1, 1)');

# a cache that holds almost nothing: slower, never wrong
$node->append_conf('postgresql.conf', "posterior.cache_size = '64kB'\n");
$node->restart;
is(same(), ($n + 1) . ' same', 'right with a cache that is too small for the context');
is($node->safe_psql('postgres', "INSERT INTO t (x, y) SELECT i, i FROM generate_series(1, 3000) i; SELECT same()"), ($n + 3001) . ' same', 'right with many rows');
is(same(), ($n + 3001) . ' same', 'and again');
cmp_ok($node->safe_psql('postgres', 'SELECT private FROM posterior.stat_cache()'), '>', 0, 'computed privately');

# without preloading the same statements work, each session for itself
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\nposterior.cache_size = '16MB'\n");
$node->restart;
is(same(), ($n + 3001) . ' same', 'right without preloading');
$node->safe_psql('postgres', 'INSERT INTO t (x, y) VALUES (1, 1)');
is(same(), ($n + 3002) . ' same', 'also after an INSERT');
is($node->safe_psql('postgres', 'SELECT shared FROM posterior.stat_cache()'), 'f', 'which the view says');
$node->stop;
done_testing();

# A psql that runs one statement in the background, under the name of victim.
package PostgreSQL::Test::Cluster;
sub background_psql_or_start
{
	my ($self, $statement) = @_;
	local $ENV{PGAPPNAME} = 'victim';
	my ($in, $out, $err) = ('', '', '');
	my $run = IPC::Run::start([ 'psql', '-XqAt', '-d', $self->connstr('postgres'), '-c', $statement ], \$in, '>', '/dev/null', '2>', \$err);
	return $run;
}
