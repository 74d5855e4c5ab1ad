# Named contexts on a hot standby, through promotion, and fed by logical replication.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Same;
use Session;
use Test::More;

my $setup = value_setup() . q{
	CREATE VIEW questions AS SELECT x, z
		FROM (VALUES (0.2::float8, 1), (0.5, 2), (0.9, 3)) v (x, z);
};
my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 'logical');
$primary->append_conf('postgresql.conf',
	"shared_preload_libraries = 'pg_posterior'\nmax_prepared_transactions = 10\n");
$primary->start;
$primary->safe_psql('postgres', $setup . value_rows());
# Several rows at once, joint draws and densities: from the context twice, and, without the cache,
# from a value that the same statement gathers.
sub joint
{
	my ($node, $name) = @_;
	my $question = q{
		SELECT prediction FROM posterior.predict_rows(%s, ARRAY(SELECT q FROM questions q))
			ORDER BY ord;
		SELECT y FROM posterior.sample(%s, ARRAY(SELECT q FROM questions q), draws => 3, seed => 5)
			ORDER BY draw, ord;
		SELECT posterior.log_density(%s, x * z, %s ORDER BY x) FROM questions q;
	};
	my $named = sprintf($question, (q{'c'}) x 3, 'q');
	my $scratch = sprintf($question, ('(SELECT posterior.context(y, x, z ORDER BY k) FROM t)') x 2,
			'(SELECT posterior.context(y, x, z ORDER BY k) FROM t)', 'x, z');
	my $right = $node->safe_psql('postgres',
		"SET posterior.model = 'causal'; SET posterior.cache = off; $scratch");
	is($right =~ tr/\n//, 12, "$name: rows, draws and a density");
	is($node->safe_psql('postgres', $named), $right, "$name: jointly from the context");
	is($node->safe_psql('postgres', $named), $right, "$name: once more");
}

# ---- hot standby ----
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(same($standby), '30 same', 'the standby answers');
is(same($standby), '30 same', 'and again');
joint($standby, 'standby');
is($standby->safe_psql('postgres', 'SELECT reads > 0 AND skips = 0 FROM posterior.stat_contexts'),
		't', 'from what is encoded, after reading the rows');
for my $i (31 .. 35)
{
	$primary->safe_psql('postgres', "INSERT INTO t (k, x, y) VALUES ($i, 1, $i)");
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is(same($standby), "$i same", 'and follows the primary');
	joint($standby, "standby, $i rows") if $i == 31;
}
$primary->safe_psql('postgres', 'UPDATE t SET y = 0 WHERE k = 7; DELETE FROM t WHERE k = 35');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(same($standby), '34 same', 'through UPDATE and DELETE');
joint($standby, 'standby, rows changed');

# Replay pauses in the middle of a transaction, and an old snapshot is kept while it goes on.
$primary->safe_psql('postgres', q{BEGIN; UPDATE t SET y = -1 WHERE k = 3;
	INSERT INTO t (k, x, y) VALUES (60, 1, 1); PREPARE TRANSACTION 'open'});
$primary->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
my $old = session($standby);
is(ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT same()'), '34 same',
		'a snapshot of the standby, with a transaction under way');
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'})
	or die 'no pause';
$primary->safe_psql('postgres', 'UPDATE t SET y = y + 1 WHERE k = 2; INSERT INTO t (k, x, y)
	VALUES (70, 1, 1)');
is(same($standby), '34 same', 'nothing of what is not replayed is seen') for 1 .. 2;
is(ask($old, 'SELECT same()'), '34 same', 'nor by the old snapshot');
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(same($standby), '35 same', 'after the pause it is') for 1 .. 2;
is(ask($old, 'SELECT same()'), '34 same', 'but not by the old snapshot');
is(same($standby), '35 same', 'in turn');

# The old snapshot stays through the promotion: its list of running transactions differs from that
# of a primary's snapshot.
$standby->promote;
is(same($standby), '35 same', 'promotion needs no action');
$standby->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
is(same($standby), '35 same', 'a proof is published');
is(ask($old, 'SELECT same()'), '34 same', 'not for the snapshot from before');
is(same($standby), '35 same', 'nor by it');
$standby->safe_psql('postgres', q{COMMIT PREPARED 'open'});
is(same($standby), '36 same', 'what was prepared on the primary is committed') for 1 .. 2;
is(ask($old, 'SELECT same()'), '34 same', 'and is not seen by the snapshot from before');
is(same($standby), '36 same', 'and is seen by others');
is(ask($old, 'COMMIT; SELECT same()'), '36 same', 'and by the next snapshot of that session');
leave($old);
$primary->safe_psql('postgres', q{ROLLBACK PREPARED 'open'});
$primary->safe_psql('postgres', 'DELETE FROM t WHERE k = 70');
$standby->safe_psql('postgres', 'DELETE FROM t WHERE k IN (60, 70)');
is(same($standby), '34 same', 'without these rows');
$standby->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
is(same($standby), '34 same', 'a proof is published');
is(same($standby), '34 same', 'and used');
$standby->safe_psql('postgres', 'INSERT INTO t (k, x, y) VALUES (36, 1, 1)');
is(same($standby), '35 same', 'what it writes itself is seen');
joint($standby, 'promoted');
is($standby->safe_psql('postgres', 'SELECT skips > 0 AND deltas > 0 FROM posterior.stat_contexts'),
		't', 'without reading all');
$standby->stop;

# ---- logical replication ----
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_posterior'\n");
$subscriber->start;
$subscriber->safe_psql('postgres', $setup);
$primary->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE t');
my $connection = $primary->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p");
$subscriber->poll_query_until('postgres',
		"SELECT count(1) = 0 FROM pg_subscription_rel WHERE srsubstate NOT IN ('r', 's')")
	or die 'no sync';
$primary->wait_for_catchup('s');
is(same($subscriber), '34 same', 'the subscriber has the initial copy');
$subscriber->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
is(same($subscriber), '34 same', 'a proof is published');
is(same($subscriber), '34 same', 'and used');
for my $step (
	[ 'INSERT INTO t (k, x, y) VALUES (40, 1, 1)', 35 ],
	[ 'INSERT INTO t (k, x, y) VALUES (41, 1, 1), (42, 1, 2)', 37 ],
	[ 'UPDATE t SET y = 5 WHERE k = 40', 37 ],
	[ 'DELETE FROM t WHERE k = 41', 36 ],
	[ 'BEGIN; TRUNCATE t RESTART IDENTITY; ' . value_rows() . ' COMMIT', 30 ],
	[ 'INSERT INTO t (k, x, y) VALUES (50, 1, 1)', 31 ])
{
	my ($statement, $n) = @$step;
	$primary->safe_psql('postgres', $statement);
	$primary->wait_for_catchup('s');
	is(same($subscriber), "$n same", "replicated: $statement");
	is(same($subscriber), "$n same", 'and again');
}
# An apply worker fires only the replica trigger for UPDATE and DELETE: where that is disabled or
# gone, no proof is used.
my $y = 100;
for my $change (
	[ 'ALTER TABLE t DISABLE TRIGGER posterior_note_change', 'off' ],
	[ 'ALTER TABLE t ENABLE TRIGGER posterior_note_change', 'on for others' ],
	[ 'DROP TRIGGER posterior_note_change ON t', 'gone' ],
	[ "SELECT posterior.alter_context(name, maintain => 'trigger') FROM posterior.contexts
				WHERE maintain = 'trigger'", 'put back' ],
	[ 'ALTER TABLE t ENABLE ALWAYS TRIGGER posterior_note_change', 'always on' ])
{
	$subscriber->safe_psql('postgres', $change->[0]);
	is(same($subscriber), '31 same', "the trigger for replicas is $change->[1]") for 1 .. 2;
	$y++;
	$primary->safe_psql('postgres', "UPDATE t SET y = $y WHERE k = 50");
	$primary->wait_for_catchup('s');
	is(same($subscriber), '31 same', "the trigger for replicas is $change->[1]: replicated UPDATE");
}
joint($subscriber, 'subscriber');
is($subscriber->safe_psql('postgres',
			'SELECT skips > 0 AND deltas > 0 FROM posterior.stat_contexts'), 't',
		'skips and deltas were used');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
$subscriber->stop;
$primary->stop;
done_testing();
