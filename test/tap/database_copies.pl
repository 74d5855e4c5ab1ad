# CREATE DATABASE by both strategies, from a template whose context is encoded: the copy answers
# from its own rows, in turn with the template and other copies, and after it was dropped and
# created again.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Same;
use Test::More;
use Unused;

my $node = PostgreSQL::Test::Cluster->new('copies');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = 10
});
$node->start;
my @strategies = $node->safe_psql('postgres', 'SHOW server_version_num') >= 150000
	? ('wal_log', 'file_copy') : ('');
my $place = PostgreSQL::Test::Utils::tempdir;
$node->safe_psql('postgres', "CREATE TABLESPACE place LOCATION '$place'");
$node->safe_psql('postgres', 'CREATE DATABASE model');
$node->safe_psql('model', same_setup());
is(same($node, 'model'), '40 same', 'the template is encoded') for 1 .. 2;

# The worker is a session of the template, which must have none.
sub copy
{
	my ($name, $strategy, $more) = @_;
	my $options = 'TEMPLATE model ' . ($strategy ne '' ? "STRATEGY $strategy " : '') . $more;
	once_unused($node, "CREATE DATABASE $name $options");
}

for my $strategy (@strategies)
{
	my $name = 'copy_' . $strategy;
	for my $more ('', 'TABLESPACE place')
	{
		copy($name, $strategy, $more);
		is(same($node, $name), '40 same', "$name $more: as the template") for 1 .. 2;
		$node->safe_psql($name, same_rows(41, 45));
		is(same($node, $name), '45 same', "$name $more: its own rows") for 1 .. 2;
		is(same($node, 'model'), '40 same', "$name $more: the template has none of them");
		$node->safe_psql('model', 'UPDATE t SET y = y + 1 WHERE k = 3');
		is(same($node, $name), '45 same', "$name $more: nor the copy those of the template");
		is(same($node, 'model'), '40 same', "$name $more: the template's own");
		once_unused($node, "DROP DATABASE $name");
	}
	copy($name, $strategy, '');
	is(same($node, $name), '40 same', "$name, made again") for 1 .. 2;
}
# All of them after a crash, which a copy by files meets with a checkpoint.
$node->stop('immediate');
$node->start;
is(same($node, $_), '40 same', "$_ after a crash") for 'model', map { "copy_$_" } @strategies;
$node->stop;

done_testing();
