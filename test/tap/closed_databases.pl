# The launcher does not retry to connect to a database that was dropped or accepts no connections;
# what is written in one after a worker was refused has its turn.
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
use Time::HiRes qw(sleep);
use Unused;

my $node = PostgreSQL::Test::Cluster->new('no_entry');
$node->init;
# No maintenance until the databases are set up.
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = -1
	autovacuum = off
});
$node->start;
for my $database ('gone', 'closed', 'open')
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, q{
		CREATE EXTENSION pg_posterior;
		CREATE TABLE t (i int PRIMARY KEY, x float8, y float8);
		INSERT INTO t SELECT i, i, i FROM generate_series(1, 8) i;
		SELECT posterior.create_context('t', 't', 'y', features => '{x}', model => 'tabular_small');
		SELECT posterior.warm_context('t');
		INSERT INTO t VALUES (9, 9, 9);
	});
}
once_unused($node, 'DROP DATABASE gone');
$node->safe_psql('postgres', 'ALTER DATABASE closed ALLOW_CONNECTIONS false');

# A dropped database is forgotten at the drop, and never tried.
my %said = (gone => qr/FATAL: .*database \d+ does not exist/,
	closed => qr/FATAL: .*database "closed" is not currently accepting connections/);
my %times = (gone => 0, closed => 1);
$node->append_conf('postgresql.conf', 'posterior.maintenance_delay = 10');
$node->reload;
$node->wait_for_log($said{closed});
# The launcher looks on: another database has its turn, twice.
my $encoded = q{SELECT rows = %d FROM posterior.stat_contexts WHERE name = 't'};
for my $row (10, 11)
{
	$node->safe_psql('open', "INSERT INTO t VALUES ($row, $row, $row)");
	ok($node->poll_query_until('open', sprintf($encoded, $row)), "an open one: $row rows");
}
my $log = slurp_file($node->logfile);
is(scalar(() = $log =~ /$said{$_}/g), $times{$_}, "$_: tried $times{$_} times") for sort keys %said;

$node->safe_psql('postgres', 'ALTER DATABASE closed ALLOW_CONNECTIONS true');
# ALTER DATABASE without a session in the database began another database life: its contexts are
# maintained after their next prediction.
$node->safe_psql('closed', q{SELECT posterior.warm_context('t')});
$node->safe_psql('closed', q{INSERT INTO t VALUES (10, 10, 10)});
ok($node->poll_query_until('closed', sprintf($encoded, 10)), 'and again after a write');

# A worker is refused; before the launcher learns of that, the database accepts connections again,
# and its tables are written. Until then the worker waits for a lock on the catalogue, and then the
# postmaster is stopped, which would notice the worker's end.
my $writer = session($node, 'closed');
ask($writer, q{
	CREATE TABLE v (x float8, y float8);
	INSERT INTO v SELECT cos(i), sin(i) FROM generate_series(1, 400) i;
	SELECT posterior.create_context('v', 'v', 'y', '{x}', model => 'tabular_sums')});
my $write = q{INSERT INTO t VALUES (%d, 0, 0);
	INSERT INTO v SELECT cos(i), sin(i) FROM generate_series(1, 2000) i};
$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'posterior worker'")
	or die 'a worker stays';
my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
my $holder = session($node);
ask($holder, 'BEGIN; ALTER DATABASE closed ALLOW_CONNECTIONS false;
	LOCK TABLE pg_database IN ACCESS EXCLUSIVE MODE');
my $logged = -s $node->logfile;
ask($writer, sprintf($write, 11));
my $worker = '';
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	$worker = ask($holder, q{SELECT pid FROM pg_locks
		WHERE relation = 'pg_database'::regclass AND NOT granted});
	last if $worker ne '';
	sleep(0.1);
}
isnt($worker, '', 'a worker has been started');
kill('STOP', $postmaster);
ask($holder, 'COMMIT');
$node->wait_for_log($said{closed}, $logged);
ask($holder, 'ALTER DATABASE closed ALLOW_CONNECTIONS true');
ask($writer, sprintf($write, 12));
kill('CONT', $postmaster);
ok($node->poll_query_until('closed', sprintf($encoded, 12)), 'what came later is encoded ahead');
ok($node->poll_query_until('closed', 'SELECT count(*) = 0 FROM posterior_internal.noted_row'),
	'and folded into sums');
leave($_) for $writer, $holder;
$node->stop;
done_testing();
