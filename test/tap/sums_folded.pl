# The background worker folds the notes of contexts that keep sums after bulk loads, in steps: what
# snapshots show stays the same, and nothing is lost where a worker is cancelled, ended or killed.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;
use Unused;

my $models = $ENV{TEST_MODELS};
plan skip_all => 'no test models' if !defined $models || !-e "$models/sums.safetensors";

my $node = PostgreSQL::Test::Cluster->new('folded');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = -1
	max_prepared_transactions = 2
	autovacuum = off
});
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	DO 'BEGIN PERFORM posterior.load_model(''sums'', ''$models/sums.safetensors''); END';
	ALTER DATABASE postgres SET posterior.model = 'sums';
	CREATE ROLE loader;
	GRANT CREATE ON SCHEMA public TO loader;
	SET ROLE loader;
	CREATE TABLE t (k int, x float8, c text, y float8);
	INSERT INTO t SELECT i, sin(i), chr(97 + i % 3), cos(i) FROM generate_series(1, 100) i;
	SELECT posterior.create_context('c', 't', 'y', '{x,c}', model => 'sums');
});

my $notes = 'SELECT count(*) FROM posterior_internal.noted_row';
# The sums, as a digest, and an answer.
my $answer = q{SELECT posterior.predict('c', '{"x": 0.3, "c": "b"}'::jsonb)};
my $state = q{SELECT posterior.rows(s) || ' ' || md5(s::text) || ' '
		|| posterior.predict('c', '{"x": 0.3, "c": "b"}'::jsonb)::text
	FROM posterior.sums('c') s};
my $read = q{SELECT posterior.rows(s) || ' ' || md5(s::text) FROM (SELECT posterior.context(
	(SELECT posterior.basis(posterior.sums('c'))), y, x, c) AS s FROM t) q};

# With -1 no worker is there from now on, and sessions have ended: a launcher reads a setting some
# time after it is told to, and a worker goes on with what it has begun.
sub delay
{
	my ($ms) = @_;
	$node->append_conf('postgresql.conf', "posterior.maintenance_delay = $ms");
	$ms < 0 ? $node->restart : $node->reload;
}

# Rows come, change and go. The first leave more notes than writers fold at once (65,536), so that
# none does: it would, at some moment, fold what is still to be folded here.
sub load
{
	my ($first) = @_;
	my $last = $first + 65999;
	$node->safe_psql('postgres', qq{
		INSERT INTO t SELECT i, sin(i), chr(97 + i % 5), cos(i)
		FROM generate_series($first, $last) i;
		UPDATE t SET y = y + 1 WHERE k BETWEEN $first AND $first + 1999;
		DELETE FROM t WHERE k BETWEEN $first + 5000 AND $last});
	return;
}

sub folded
{
	return $node->poll_query_until('postgres', "SELECT count(*) = 0
		FROM posterior_internal.noted_row");
}

# ---- without a worker ----------------------------------------------------------------------------
load(1000);
my $loaded = $node->safe_psql('postgres', $notes);
is($loaded, 131000, 'a load leaves notes');
my $before = $node->safe_psql('postgres', $state);
like($before, qr/^5100 /, 'which readers add up');
is($node->safe_psql('postgres', $notes), $loaded, 'without a worker they stay');

# ---- with one ------------------------------------------------------------------------------------
my $old = session($node);
ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
delay(10);
ok(folded(), 'a worker folds them');
is($node->safe_psql('postgres', $state), $before, 'which changes no answer');
my $rows = $node->safe_psql('postgres', $read);
is(substr($before, 0, length($rows)), $rows, 'that of the rows');
is(ask($old, $state), $before, 'nor those of snapshots from before');
is(ask($old, $notes), $loaded, 'that see the notes');
# which cannot be removed then; yet readers that do not see them pass over them
my $late = session($node);
ask($late, $answer) for 1 .. 2;
my $plan = ask($late, "EXPLAIN (ANALYZE, BUFFERS) $answer");
cmp_ok($plan =~ /shared hit=(\d+)/ ? $1 : 1e9, '<', 100, 'others do not read them any more');
leave($late);
leave($old);

# ---- interrupted ---------------------------------------------------------------------------------
# A worker that waits for the notes' table, having read some.
sub waiting_worker
{
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity
		JOIN pg_locks USING (pid) WHERE backend_type = 'posterior worker' AND NOT granted})
		or die 'no worker waits';
	return $node->safe_psql('postgres',
		q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'posterior worker'});
}

my $first = 100000;
for my $end ('pg_cancel_backend', 'pg_terminate_backend', 'stop')
{
	delay(-1);
	my $holder = session($node);
	load($first += 100000);
	my $left = $node->safe_psql('postgres', $notes);
	my $now = $node->safe_psql('postgres', $state);
	# readers and writers go on, and folding does not
	ask($holder, 'BEGIN; LOCK TABLE posterior_internal.noted_row IN SHARE MODE');
	delay(10);
	my $pid = waiting_worker();
	if ($end eq 'stop')
	{
		$node->stop('immediate');
		$node->start;
	}
	else
	{
		$node->safe_psql('postgres', "SELECT $end($pid)");
		$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity
			WHERE pid = $pid") or die 'it does not end';
		is($node->safe_psql('postgres', $notes), $left, "$end: nothing is lost");
		ask($holder, 'ROLLBACK');
		leave($holder);
	}
	is($node->safe_psql('postgres', $state), $now, "$end: answers stay");
	$node->restart if $end eq 'pg_cancel_backend';
	$node->safe_psql('postgres', $state);
	ok(folded(), "$end: a reader that meets many has them folded");
	is($node->safe_psql('postgres', $state), $now, "$end: and answers stay");
}

# ---- transactions that have not ended ------------------------------------------------------------
delay(-1);
$node->safe_psql('postgres', q{BEGIN; INSERT INTO t VALUES (0, 7, 'b', 7);
	PREPARE TRANSACTION 'later'});
load($first += 100000);
my $now = $node->safe_psql('postgres', $state);
delay(10);
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM posterior_internal.noted_row'),
	'the notes that snapshots show are folded');
is($node->safe_psql('postgres', $state), $now, 'and no others');
delay(-1);
$node->safe_psql('postgres', q{COMMIT PREPARED 'later'});
is($node->safe_psql('postgres', $notes), '1', 'those of a prepared transaction wait for its end');
$rows = $node->safe_psql('postgres', $read);
is(substr($node->safe_psql('postgres', $state), 0, length($rows)), $rows, 'and are true then');

# ---- what is gone --------------------------------------------------------------------------------
# What is dropped while a worker folds goes when its step has ended.
sub dropped
{
	my ($drop) = @_;
	delay(-1);
	my ($holder, $dropper) = (session($node), session($node));
	load($first += 100000);
	ask($holder, 'BEGIN; LOCK TABLE posterior_internal.noted_row IN SHARE MODE');
	delay(10);
	my $pid = waiting_worker();
	# what it says when it is done is the only output
	$dropper->{in} .= "$drop;\n\\echo done\n";
	$dropper->{run}->pump_nb while length $dropper->{in};
	$node->poll_query_until('postgres', 'SELECT count(*) > 1 FROM pg_locks WHERE NOT granted')
		or die 'the drop does not wait';
	ask($holder, 'ROLLBACK');
	$dropper->{run}->pump until $dropper->{out} =~ /^(done|.*ERROR)/m;
	unlike($dropper->{out}, qr/ERROR/, "$drop, while a worker folds");
	leave($_) for $holder, $dropper;
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity
		WHERE pid = $pid") or die 'the worker does not end';
	return;
}

# DROP EXTENSION locks the table of models before that of definitions, and so does a step.
delay(-1);
my $holder = session($node);
load($first += 100000);
ask($holder, 'BEGIN; LOCK TABLE posterior.model_file IN ACCESS EXCLUSIVE MODE');
delay(10);
my $waiting = waiting_worker();
is($node->safe_psql('postgres', qq{SELECT count(*) FROM pg_locks JOIN pg_class c ON c.oid = relation
	WHERE pid = $waiting AND granted AND relname = 'context_definition'}), '0',
	'a worker that waits for models holds no lock on definitions');
ask($holder, 'ROLLBACK');
leave($holder);

dropped(q{SELECT FROM posterior.drop_context('c')});
is($node->safe_psql('postgres', 'SELECT count(*) FROM posterior_internal.kept_sums'), '0',
	'nothing is left of it');
$node->safe_psql('postgres', q{SELECT posterior.create_context('c', 't', 'y', '{x,c}',
	model => 'sums')});
delay(-1);
load($first += 100000);
once_unused($node, 'CREATE DATABASE other TEMPLATE postgres');
$node->safe_psql('other', q{ALTER DATABASE other SET posterior.model = 'sums'});
delay(0);
$node->safe_psql('other', $state);
once_unused($node, 'DROP DATABASE other');
ok(folded(), 'a database is dropped while its notes are folded');
dropped('SET client_min_messages = error; DROP EXTENSION pg_posterior CASCADE');
$node->stop;
ok(!$node->log_contains('PANIC|WARNING'), 'and the log is quiet');
done_testing();
