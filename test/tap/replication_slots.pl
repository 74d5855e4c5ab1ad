# Replication slots and long transactions: answers stay right while a slot keeps old rows and old
# catalogs, a slot's stream has the writes to tables and nothing of the extension's, the worker
# keeps no snapshot that would hold them longer, and a publication of all tables stops nothing and
# counts no row twice.
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

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 'logical');
$primary->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = 10
	autovacuum = off
});
$primary->start;
$primary->safe_psql('postgres', same_setup());
$primary->backup('copy');
$primary->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('physical')});
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->append_conf('postgresql.conf',
	"primary_slot_name = 'physical'\nhot_standby_feedback = on\n");
$standby->start;
my $decoded = $primary->psql('postgres',
		q{SELECT pg_create_logical_replication_slot('logical', 'test_decoding')}) == 0;

# A transaction on the primary and one on the standby stay open throughout.
my ($old, $far) = (session($primary), session($standby));
is(ask($_, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT same()'), '40 same',
		'a long transaction begins') for $old, $far;
my $writer = session($primary);
ask($writer, 'BEGIN; ' . same_rows(900, 900) =~ s/;$//r);

my $n = 40;
for my $round (1 .. 4)
{
	my $first = 100 * $round;
	$primary->safe_psql('postgres', same_rows($first, $first + 5));
	is(same($primary), ($n + 6) . ' same', "round $round: on the primary");
	$primary->safe_psql('postgres',
		"UPDATE t SET y = y + 1 WHERE k = $round; DELETE FROM t WHERE k = $first");
	$n += 5;
	is(same($primary), "$n same", "round $round: rows changed");
	$primary->safe_psql('postgres', 'VACUUM t');
	is(same($primary), "$n same", "round $round: after VACUUM");
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is(same($standby), "$n same", "round $round: on the standby");
	is(ask($_, 'SELECT same()'), '40 same', "round $round: a long transaction") for $old, $far;
}
is(ask($writer, 'SELECT same()'), ($n + 1) . ' same', 'the writer sees its own row');

ask($writer, 'COMMIT');
$n++;
is(same($primary), "$n same", 'the writer commits');
is(ask($_, 'SELECT same()'), '40 same', 'which a long transaction does not see') for $old, $far;
is(ask($old, 'COMMIT; SELECT same()'), "$n same", 'until it ends');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(ask($far, 'COMMIT; SELECT same()'), "$n same", 'there, too');
leave($_) for $old, $far, $writer;

$primary->safe_psql('postgres', same_rows(901, 901));
$n++;
# The worker has encoded, and holds nothing beyond its work.
ok($primary->poll_query_until('postgres', qq{SELECT rows = $n FROM posterior.stat_contexts}),
		'the worker has encoded ahead');
ok($primary->poll_query_until('postgres',
			q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'posterior worker'
			AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)}), 'and has no snapshot');

SKIP:
{
	skip 'no test_decoding here', 2 unless $decoded;
	my $changes = $primary->safe_psql('postgres',
			q{SELECT DISTINCT split_part(data, ':', 1)
				FROM pg_logical_slot_get_changes('logical', NULL, NULL) WHERE data LIKE 'table%'});
	is($changes, 'table public.t', 'a logical slot has changes of the table and no others');
	$primary->safe_psql('postgres', q{SELECT count(*) FROM t; SELECT same()});
	is($primary->safe_psql('postgres',
				q{SELECT count(*) FROM pg_logical_slot_get_changes('logical', NULL, NULL)
				WHERE data LIKE 'table%'}), '0', 'predictions write none');
	$primary->safe_psql('postgres', q{SELECT pg_drop_replication_slot('logical')});
}
$standby->stop;
$primary->safe_psql('postgres', same_rows(1000, 1009));
is(same($primary), ($n + 10) . ' same', 'with a slot whose standby is gone');
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(same($standby), ($n + 10) . ' same', 'and comes back');
$standby->stop;

# An unlogged table has no rows there, and a context over it says so.
$primary->safe_psql('postgres', q{
	CREATE UNLOGGED TABLE unlogged AS SELECT i AS k, i * 0.1 AS x, sin(i) AS y
		FROM generate_series(1, 20) i;
	SELECT posterior.create_context('unlogged', 'unlogged', 'y', '{x}', 'k')});
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
my ($status, $out, $err) = $standby->psql('postgres',
	q{SELECT posterior.predict('unlogged', '{"x": 1}'::jsonb)});
like($err, qr/cannot access temporary or unlogged relations during recovery/,
	'an unlogged table on the standby');
$standby->stop;

# The tables of the extension are in a publication of all tables, too.
$primary->safe_psql('postgres', q{
	CREATE TABLE s (k int PRIMARY KEY, x float8, y float8);
	INSERT INTO s SELECT i, i * 0.1, sin(i) FROM generate_series(1, 60) i;
	SELECT posterior.create_context('s', 's', 'y', '{x}', model => 'tabular_sums');
	CREATE TABLE passing (i int);
	CREATE PUBLICATION everything FOR ALL TABLES});
is($primary->psql('postgres', 'DROP TABLE passing'), 0, 'a table of others is dropped');
$primary->safe_psql('postgres', q{
	CREATE TABLE passing (k int, x float8, y float8);
	INSERT INTO passing SELECT * FROM s;
	SELECT posterior.create_context('passing', 'passing', 'y', '{x}', model => 'tabular_sums');
	INSERT INTO passing VALUES (0, 0, 0)});
is($primary->psql('postgres', 'DROP TABLE passing'), 0, 'so is one with a context of sums');
is($primary->safe_psql('postgres', q{SELECT count(*) FROM posterior.contexts WHERE name = 'passing'}
		. q{ UNION ALL SELECT count(*) FROM posterior_internal.kept_sums}
		. q{ UNION ALL SELECT count(DISTINCT kept) FROM posterior_internal.noted_row
			WHERE kept NOT IN (SELECT kept FROM posterior_internal.kept_sums)}),
		"0\n1\n0", 'and nothing of it is left');

# A copy, as pg_createsubscriber makes one: its notes are those of the primary until it follows.
$primary->safe_psql('postgres', q{SELECT posterior.warm_context('s');
	SELECT pg_create_logical_replication_slot('everything', 'pgoutput')});
$primary->backup('subscriber');
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init_from_backup($primary, 'subscriber');
$subscriber->start;
my $from = $primary->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', qq{DROP PUBLICATION everything;
	CREATE SUBSCRIPTION everything CONNECTION '$from' PUBLICATION everything
		WITH (create_slot = false, slot_name = 'everything', copy_data = false)});
$primary->safe_psql('postgres',
	'INSERT INTO s SELECT i, 3, 50 FROM generate_series(100, 120) i; DELETE FROM s WHERE k < 11');
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 71 FROM s'), 'rows come');
is($subscriber->safe_psql('postgres', q{SET posterior.cache = verify;
	SELECT posterior.rows(posterior.sums('s')), posterior.predict('s', '{"x": 3}'::jsonb) IS NULL}),
		'71|f', 'and are counted once');
$primary->safe_psql('postgres', q{SELECT posterior.warm_context('s');
	INSERT INTO s SELECT i, 3, 51 FROM generate_series(200, 220) i});
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 92 FROM s'), 'more come');
is($subscriber->safe_psql('postgres', q{SET posterior.cache = verify;
	SELECT posterior.rows(posterior.sums('s')), posterior.predict('s', '{"x": 3}'::jsonb) IS NULL}),
		'92|f', 'after the primary has put its own into sums');

# A subscriber that has the tables and the extension alone: the first copy comes to an end.
$primary->safe_psql('postgres', q{
	SELECT posterior.load_model('mine', file) FROM posterior.model_file WHERE name = 'toy';
	DROP TABLE unlogged});
$subscriber->safe_psql('postgres', 'CREATE DATABASE plain');
my $shape = $primary->safe_psql('postgres',
	q{SELECT string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ')
		FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 AND NOT attisdropped});
$subscriber->safe_psql('plain', "CREATE EXTENSION pg_posterior; CREATE TABLE t ($shape);
	CREATE TABLE s (k int PRIMARY KEY, x float8, y float8);
	CREATE SUBSCRIPTION plain CONNECTION '$from' PUBLICATION everything");
ok($subscriber->poll_query_until('plain',
		q{SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel}), 'the first copy ends');
is($subscriber->safe_psql('plain', q{SELECT (SELECT count(*) FROM s),
		(SELECT count(*) FROM posterior.model_file WHERE NOT bundled) > 0,
		(SELECT count(*) FROM posterior_internal.kept_sums)}), '92|t|0',
	'with loaded models, and without sums');
$subscriber->safe_psql('plain', 'DROP SUBSCRIPTION plain');
$subscriber->safe_psql('postgres', q{ALTER SUBSCRIPTION everything DISABLE;
	ALTER SUBSCRIPTION everything SET (slot_name = NONE); DROP SUBSCRIPTION everything});
$subscriber->stop;
$primary->stop;

done_testing();
