# A statement's first prediction and the rows inserted before it pass through the model together,
# whatever their size, unless a device is to compute.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('together');
$node->init;
$node->append_conf('postgresql.conf', qq{
	shared_preload_libraries = 'pg_posterior'
	posterior.device_threshold = 0
	posterior.maintenance_delay = -1
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t AS SELECT i, sin(i * 0.1) AS y, i * 0.01 AS x FROM generate_series(1, 100) i;
	SELECT posterior.create_context('t', 't', 'y', features => '{x}', order_by => 'i',
			model => 'toy');
	SELECT posterior.warm_context('t');
});

# Whether an inserted row and the prediction after it pass together, and whether the answer is
# right.
sub step
{
	my ($settings) = @_;
	my ($out, $err) = ('', '');
	$node->psql('postgres', qq{
		$settings
		INSERT INTO t SELECT max(i) + 1, 0.5, 0.7 FROM t;
		SET client_min_messages = debug1;
		SELECT posterior.mean(posterior.predict('t', r)) FROM (SELECT 0.3::float8 AS x) r;
		SET client_min_messages = notice;
		SET posterior.cache = off;
		SET posterior.device = cpu;
		SELECT posterior.mean(posterior.predict('t', r)) FROM (SELECT 0.3::float8 AS x) r;
	}, stdout => \$out, stderr => \$err);
	my @answers = split /\n/, $out;
	return ($err =~ /went through the model together/ ? 1 : 0, @answers == 2
		&& $answers[0] eq $answers[1] ? 1 : 0);
}

SKIP:
{
	skip 'there is a device', 2
		if $node->safe_psql('postgres', 'SELECT state FROM posterior.stat_server') eq 'ready';
	is(join(' ', step('')), '1 1', 'together where a device is only preferred and there is none');
	is(join(' ', step('SET posterior.device = cuda; SET posterior.on_device_error = cpu;')), '0 1',
		'not where a device is to be asked');
}
is(join(' ', step('SET posterior.device = cpu;')), '1 1', 'together where the CPU is to answer');
is(join(' ', step("SET posterior.device = cpu; SET posterior.kernels = reference;")), '0 1',
	'not where nothing is encoded in this arithmetic yet');

$node->stop;
done_testing();
