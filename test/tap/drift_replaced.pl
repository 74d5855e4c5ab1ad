# A definition is replaced while the background worker encodes under it: how far its rows had
# drifted says nothing about the new one, which is not refreshed for it either.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StopPhase;
use Test::More;

my $node = encoding_node('replaced');

sub set
{
	my ($setting) = @_;
	$node->append_conf('postgresql.conf', $setting);
	$node->reload;
	return;
}

my $drift = q{SELECT drift FROM posterior.stat_contexts WHERE name = 't'};
my $version = q{SELECT version FROM posterior.context_definition WHERE name = 't'};

# A context whose rows drift; the worker is stopped while it encodes these, and no other one starts.
# Then the definition is replaced, and the worker goes on to its end.
sub replace
{
	my ($statement) = @_;
	my $rows = q{INSERT INTO t (y, x, z) SELECT sin(i), n + i, 0
		FROM (SELECT count(*) AS n FROM t) r, generate_series(1, %d) i};
	my ($few, $many) = map { sprintf($rows, $_) } 64, 400;
	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (i int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, y float8, x float8,
			z float8);
		$few;
		SELECT posterior.create_context('t', 't', 'y', features => '{x}', order_by => 'i',
				model => 'tabular_small');
		SELECT posterior.warm_context('t');
		$many});
	set('posterior.maintenance_delay = 1');
	my $pid = stop_phase($node, 'posterior worker', 'encoding suffix',
		sub { $node->safe_psql('postgres', $many) });
	set('posterior.maintenance_delay = -1');
	my $before = $node->safe_psql('postgres', $version);
	$node->safe_psql('postgres', $statement);
	my $after = $node->safe_psql('postgres', $version);
	isnt($after, $before, "replaced: $statement");
	kill 'CONT', $pid;
	ok($node->poll_query_until('postgres',
			"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid"), 'the worker ends');
	is($node->safe_psql('postgres', $version), $after, 'and leaves the definition as it is');
	return;
}

my $other = q{SELECT posterior.alter_context('t', features => '{x,z}')};
for my $statement (q{SELECT posterior.refresh_context('t')}, $other)
{
	replace($statement);
	is($node->safe_psql('postgres', $drift), '', 'no drift is told of the new definition');
	$node->safe_psql('postgres', q{SELECT posterior.warm_context('t')});
	is($node->safe_psql('postgres', $drift), '', 'nor when it has been used');
}

# What was measured under the old definition is no reason to refresh the new one.
set('posterior.drift_limit = 0.5');
replace($other);
is($node->safe_psql('postgres', q{SELECT refreshed_rows FROM posterior.contexts WHERE name = 't'}),
	'', 'its prefix is where the new definition has put it');
$node->stop;
ok(!$node->log_contains('WARNING|PANIC|TRAP'), 'the log is quiet');
done_testing();
