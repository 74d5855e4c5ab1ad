# A context of more rows than posterior.row_limit: the background worker tries once for each write,
# and a session obeys its own setting. Also the progress of encoding a prefix, in stat_progress.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = PostgreSQL::Test::Cluster->new('row_limit');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = -1
	posterior.row_limit = 50
	log_min_messages = debug1
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE large (i int PRIMARY KEY, y float8, x float8);
	CREATE TABLE small (LIKE large INCLUDING ALL);
	SELECT posterior.create_context(c, c::regclass, 'y', features => '{x}', order_by => 'i',
			model => 'toy') FROM unnest('{large,small}'::text[]) c;
	INSERT INTO large SELECT i, sin(i), cos(i) FROM generate_series(1, 50) i;
	INSERT INTO small SELECT * FROM large LIMIT 20;
});
# No turn is left from the set-up.
$node->append_conf('postgresql.conf', 'posterior.maintenance_delay = 0');
$node->restart;
$node->safe_psql('postgres',
	q{SELECT posterior.warm_context('large'), posterior.warm_context('small')});
my $ask = q{SELECT posterior.kind(posterior.predict('large', r)) FROM (SELECT 0.3::float8 AS x) r};
is($node->safe_psql('postgres', $ask), 'mixture', 'as many rows as the limit');

# Rows for `small`, and wait until a worker has encoded them.
my $rows = 20;
sub worker_comes_by
{
	for (1, 2)
	{
		$rows++;
		$node->safe_psql('postgres', "INSERT INTO small VALUES ($rows, 1, 1)");
		$node->poll_query_until('postgres',
				"SELECT rows = $rows FROM posterior.stat_contexts WHERE name = 'small'")
			or die 'the worker does nothing';
	}
}

# How often a worker has tried; waits for so many times, for a context rests after each.
my $said = qr/was not encoded ahead: context "large" has more than 50 rows, which are the limit/;
sub tried
{
	my ($times) = @_;
	my $found = 0;
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$found = () = slurp_file($node->logfile) =~ /$said/g;
		last if $found >= $times;
		sleep(0.1);
	}
	return $found;
}

worker_comes_by();
my $state = q{SELECT rows, reads, extensions, rebuilds, deltas FROM posterior.stat_contexts
		WHERE name = 'large'};
my $before = $node->safe_psql('postgres', $state);
for my $i (51, 52)
{
	$node->safe_psql('postgres', "INSERT INTO large VALUES ($i, 1, 1)");
	tried($i - 50);
	worker_comes_by();
}
is(tried(2), 2, 'a worker tries once for each write');
is($node->safe_psql('postgres', $state), $before, 'and encodes nothing');
my ($status, $out, $err) = $node->psql('postgres', $ask);
like($err, qr/ERROR:  context "large" has more than 50 rows, which are the limit/,
	'nor does a session');
is($node->safe_psql('postgres', "SET posterior.row_limit = 52; $ask"), 'mixture',
	'but one with another limit');
$node->psql('postgres', $ask, stderr => \$err);
like($err, qr/ERROR:  context "large" has more than 50 rows, which are the limit/,
	'which is no answer for others');

# A prefix of 2048 rows is encoded again and again until its progress has been seen.
$node->safe_psql('postgres', q{
	ALTER SYSTEM SET posterior.row_limit = 0;
	SELECT pg_reload_conf();
	CREATE TABLE long AS SELECT i, sin(i) AS y, cos(i) AS x FROM generate_series(1, 2100) i;
	SELECT posterior.create_context('long', 'long', 'y', features => '{x}', order_by => 'i',
			model => 'gp1d');
});
my $encoder = IPC::Run::start([ 'psql', '-XqAt', '-d', $node->connstr('postgres'), '-c',
	q{SET posterior.row_limit = 0; SET posterior.cache = off;
		DO 'BEGIN LOOP PERFORM posterior.warm_context(''long''); END LOOP; END'} ],
	'<', '/dev/null', '>', '/dev/null', '2>', '/dev/null');
ok($node->poll_query_until('postgres',
			q{SELECT EXISTS (SELECT FROM posterior.stat_progress WHERE phase = 'encoding prefix'
			AND done > 0 AND done < 2048 AND total = 2100)}),
	'rows of a prefix are counted while it is encoded');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE query LIKE '%LOOP%' AND pid <> pg_backend_pid()});
$encoder->finish;
$node->stop;
done_testing();
