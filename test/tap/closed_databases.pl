# The launcher does not retry to connect to a database that was dropped or accepts no connections.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('no_entry');
$node->init;
# No maintenance until the databases are set up.
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = -1
});
$node->start;
for my $database ('gone', 'closed')
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
$node->safe_psql('postgres', 'DROP DATABASE gone');
$node->safe_psql('postgres', 'ALTER DATABASE closed ALLOW_CONNECTIONS false');

# A dropped database is forgotten at the drop, and never tried.
my %said = (gone => qr/FATAL: .*database \d+ does not exist/,
	closed => qr/FATAL: .*database "closed" is not currently accepting connections/);
my %times = (gone => 0, closed => 1);
$node->append_conf('postgresql.conf', 'posterior.maintenance_delay = 10');
$node->reload;
$node->wait_for_log($said{closed});
# The launcher looks ten times a second.
sleep 1;
my $log = slurp_file($node->logfile);
is(scalar(() = $log =~ /$said{$_}/g), $times{$_}, "$_: tried $times{$_} times") for sort keys %said;

$node->safe_psql('postgres', 'ALTER DATABASE closed ALLOW_CONNECTIONS true');
# ALTER DATABASE without a session in the database began another database life: its contexts are
# maintained after their next prediction.
$node->safe_psql('closed', q{SELECT posterior.warm_context('t')});
# The launcher may learn only now that the worker has failed, and drop the turns of that database: a
# row is written until one is taken.
ok($node->poll_query_until('closed',
			q{WITH w AS (INSERT INTO t VALUES (10, 10, 10) ON CONFLICT (i) DO UPDATE SET y = 10)
			SELECT rows = 10 FROM posterior.stat_contexts WHERE name = 't'}),
		'and again after a write');
$node->stop;
done_testing();
