# Every kind of statement is cancelled in the middle: it ends with the right error, the session goes
# on, and no memory of the statement stays allocated.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Memory;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('cancel');
$node->init;
$node->append_conf('postgresql.conf', "posterior.model = 'tabular_small'\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t AS SELECT i, sin(i * 0.1) AS y, i * 0.1 AS x, cos(i * 0.3) AS z
		FROM generate_series(1, 20000) i;
	CREATE TABLE c AS SELECT posterior.context(y, x, z) AS ctx FROM t WHERE i <= 500;
	SELECT posterior.create_context('near', 't', 'y', '{x,z}', 'i', neighbours => 512);
});

# Each takes far longer than the timeout on any machine.
my %questions = (
	build => 'SELECT posterior.predict(posterior.context(y, x, z), 1, 2) FROM t',
	neighbours => q{SELECT count(*) FROM posterior.predict_rows('near', ARRAY(SELECT t FROM t))},
	sample => 'SELECT count(*) FROM c,
			posterior.sample(ctx, ARRAY(SELECT ROW(x, z) FROM t WHERE i <= 400), 2000)',
	density => 'SELECT posterior.log_density_averaged(ctx, 100000, 1, y, x, z) FROM c, t
			WHERE i <= 100 GROUP BY ctx',
	evidence => 'SELECT posterior.log_evidence(y, x, z ORDER BY i) FROM t',
	frame => 'SELECT count(posterior.mean(d))
			FROM (SELECT posterior.regress(y, x, z)
				OVER (ORDER BY i ROWS BETWEEN 2000 PRECEDING AND 1 PRECEDING) AS d FROM t) s',
	quantiles => 'SELECT count(posterior.quantile(d, array_fill(0.37::float8, ARRAY[2000000])))
			FROM (SELECT posterior.mixture(array_fill(1 / 1000.0::float8, ARRAY[1000]),
				array_agg(i), array_fill(1::float8, ARRAY[1000])) AS d
		FROM generate_series(1, 1000) i) m',
	rows => 'SELECT count(*) FROM c,
			posterior.predict_rows(ctx,
				(SELECT array_agg(ROW(x, z)) FROM t, generate_series(1, 40)))',
);

for my $mode ('on', 'off', 'verify')
{
	for my $name (sort keys %questions)
	{
		my ($status, $out, $err) = $node->psql('postgres', qq{
			SET posterior.cache = $mode;
			SET statement_timeout = '150ms';
			$questions{$name};
		});
		like($err, qr/canceling statement due to statement timeout/,
			"cache $mode: $name is cancelled");
		cmp_ok($status, '!=', 0, "cache $mode: $name fails");
	}
}

# One session, cancelled again and again: its memory stops rising.
my $script = "SET client_min_messages = fatal; SET statement_timeout = '60ms';\n"
	. "\\set ON_ERROR_STOP 0\n";
my $memory = "SET statement_timeout = 0; SELECT 'memory ' || sum(total_bytes)
		FROM pg_backend_memory_contexts; SET statement_timeout = '60ms';\n";
for my $round (1 .. 12)
{
	$script .= "$questions{$_};\n" for sort keys %questions;
	$script .= $memory;
}
$script .= "SET statement_timeout = 0;
		SELECT posterior.kind(posterior.predict(ctx, 1, 2)) FROM c;\n";
my ($out, $err);
$node->psql('postgres', $script, stdout => \$out, stderr => \$err, on_error_stop => 0);
my @memory = $out =~ /memory (\d+)/g;
is(scalar(@memory), 12, 'memory was looked at in every round');
cmp_ok(calm(@memory), '>=', 3, 'cancelled statements leave no memory behind')
	or diag("bytes after each round: @memory");
like($out, qr/^mixture$/m, 'the session answers afterwards');

$node->stop;
done_testing();
