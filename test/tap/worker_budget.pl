# A context that takes long to encode rests for long, and delays neither other databases nor other
# contexts.
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
use Time::HiRes qw(sleep time);

my $node = PostgreSQL::Test::Cluster->new('budget');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = 10
});
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql($_, q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE slow (i int, x float8, y float8);
	INSERT INTO slow SELECT i, i, i FROM generate_series(1, 20) i;
	CREATE TABLE quick AS TABLE slow;
	SELECT posterior.create_context(r, r::regclass, 'y', features => '{x}', order_by => 'i',
			model => 'tabular_small') FROM unnest('{slow,quick}'::text[]) r;
	SELECT posterior.warm_context(r) FROM unnest('{slow,quick}'::text[]) r})
		for 'postgres', 'other';
# The worker waits for the lock when it plans the query for the rows.
$node->safe_psql('postgres', q{
	CREATE FUNCTION wait() RETURNS float8 IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		IF (SELECT backend_type = 'posterior worker' FROM pg_stat_activity
				WHERE pid = pg_backend_pid()) THEN
			PERFORM pg_advisory_lock_shared(32), pg_advisory_unlock_shared(32);
		END IF;
		RETURN 1;
	END $$;
	CREATE INDEX ON slow (x) WHERE public.wait() < x});

my $s = session($node);
my $rows = q{SELECT rows = %d FROM posterior.stat_contexts WHERE name = '%s'};
my $waits = q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'posterior worker'
		AND datname = 'postgres' AND wait_event = 'advisory'};
ask($s, 'SELECT pg_advisory_lock(32)');
$node->safe_psql('postgres', 'INSERT INTO slow VALUES (21, 1, 1)');
ok($node->poll_query_until('postgres', $waits), 'a context takes long');
$node->safe_psql('other', 'INSERT INTO quick VALUES (21, 1, 1)');
ok($node->poll_query_until('other', sprintf($rows, 21, 'quick')),
	'another database is served meanwhile');
is($node->safe_psql('postgres', $waits), 't', 'beside that worker');

# It rests nine times as long as it is held, which is at least from $began to $ended. Where that is
# over before this program has looked, what it sees says nothing, and it holds for longer.
my ($held, $began) = (1.5, time);
for my $n (21 .. 26)
{
	sleep $held;
	my $ended = time;
	$held = $ended - $began;
	ask($s, 'SELECT pg_advisory_unlock(32)');
	ok($node->poll_query_until('postgres', sprintf($rows, 2 * $n - 21, 'slow')),
		'it has its turn all the same');
	$node->safe_psql('postgres', "INSERT INTO slow VALUES (2 * $n - 20, 1, 1);
		INSERT INTO quick VALUES ($n, 1, 1)");
	ok($node->poll_query_until('postgres', sprintf($rows, $n, 'quick')),
		'another context of the database is encoded ahead');
	my $first = $node->safe_psql('postgres', sprintf($rows, 2 * $n - 21, 'slow'));
	if ($first eq 't' || time - $ended < 9 * $held || $n == 26)
	{
		is($first, 't', 'before the one that rests');
		ok($node->poll_query_until('postgres', sprintf($rows, 2 * $n - 20, 'slow')),
			'which is when it has rested, without another write');
		last;
	}
	ask($s, 'SELECT pg_advisory_lock(32)');
	$node->safe_psql('postgres', "INSERT INTO slow VALUES (2 * $n - 19, 1, 1)");
	$node->poll_query_until('postgres', $waits) or die 'it is not encoded';
	($held, $began) = (2 * $held, time);
}
leave($s);
$node->stop;
done_testing();
