# Without a worker slot the launcher waits and lets the server stop, however short
# posterior.maintenance_delay is; when there is a slot again it goes on.
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

my $node = PostgreSQL::Test::Cluster->new('no_place');
$node->init;
# One slot for the launcher, the other for that of logical replication.
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = 0
	max_worker_processes = 2
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t (i int PRIMARY KEY, x float8, y float8);
	INSERT INTO t SELECT i, i, i FROM generate_series(1, 8) i;
	SELECT posterior.create_context('t', 't', 'y', features => '{x}', model => 'tabular_small');
	SELECT posterior.warm_context('t');
	INSERT INTO t VALUES (9, 9, 9);
});
# The launcher has tried, and will again.
sleep 1;
is($node->safe_psql('postgres', q{SELECT rows FROM posterior.stat_contexts WHERE name = 't'}), '8',
		'nothing is encoded ahead');
ok($node->stop('fast', fail_ok => 1), 'the server stops');

# Another process has the only slot for a worker, and gives it back: the turn is still there.
$node->append_conf('postgresql.conf', 'max_worker_processes = 3');
$node->start;
my $holder = session($node);
ask($holder, q{SELECT set_config(name, 'on', false) FROM pg_settings
	WHERE name IN ('force_parallel_mode', 'debug_parallel_query')});
$holder->{in} .= "SELECT pg_sleep(100000);\n";
$holder->{run}->pump_nb while length $holder->{in};
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity
		WHERE backend_type = 'parallel worker'}), 'a parallel worker has the slot');
$node->safe_psql('postgres', q{SELECT posterior.warm_context('t');
			INSERT INTO t VALUES (10, 10, 10)});
# The launcher has tried.
sleep 1;
is($node->safe_psql('postgres', q{SELECT rows FROM posterior.stat_contexts WHERE name = 't'}), '9',
		'nothing is encoded ahead');
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity
	WHERE query LIKE 'SELECT pg_sleep%' AND backend_type = 'client backend'});
ok($node->poll_query_until('postgres',
			q{SELECT rows = 10 FROM posterior.stat_contexts WHERE name = 't'}),
		'with a place it is, without another write');
leave($holder);
$node->stop;
done_testing();
