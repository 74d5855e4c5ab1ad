# The encoding that a call site holds is not evicted; when the session ends, in whatever way, all of
# the cache can be evicted again.
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

my $node = PostgreSQL::Test::Cluster->new('pins');
$node->init;
$node->append_conf('postgresql.conf', qq{
	shared_preload_libraries = 'pg_posterior'
	posterior.cache_size = '16MB'
	posterior.device = cpu
	posterior.maintenance_delay = -1
	posterior.model = 'tabular_small'
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t AS SELECT i, i / 10.0::float8 AS x, sin(i) AS y FROM generate_series(1, 40) i;
	SELECT posterior.create_context('c', 't', 'y', features => '{x}', order_by => 'i');
	CREATE FUNCTION fill(n int, size int) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. n LOOP
			PERFORM posterior.predict(c, 0.5::float8)
				FROM (SELECT posterior.context(g + random(), g::float8 ORDER BY g) AS c
					FROM generate_series(1, size) g) s;
		END LOOP;
	END $$;
});
sub cache { return $node->safe_psql('postgres', "SELECT $_[0] FROM posterior.stat_cache()") }

# ---- a pinned encoding outlives the eviction of others, also when its table has changed and no
# other session can find it ----
my $question = "SELECT posterior.predict('c', q) FROM generate_series(1, 12) i,
		LATERAL (SELECT i / 10.0::float8 AS x) q";
my @right = split /\n/, $node->safe_psql('postgres', "SET posterior.cache = off; $question");
for my $change ('SELECT', 'UPDATE t SET y = y + 1')
{
	my $reader = session($node);
	is(ask($reader, "BEGIN; DECLARE answers CURSOR FOR $question; FETCH 2 FROM answers"),
		join("\n", @right[0 .. 1]), "$change: a cursor has asked");
	$node->safe_psql('postgres', $change);
	for my $i (0 .. 4)
	{
		my $before = cache('evictions');
		$node->safe_psql('postgres', "SELECT fill(150, 40 + $i)");
		cmp_ok(cache('evictions'), '>', $before, "$change: others give way") if $i > 0;
		is(ask($reader, 'FETCH 2 FROM answers'), join("\n", @right[2 + 2 * $i .. 3 + 2 * $i]),
			"$change: it goes on with the same encoding");
	}
	is(ask($reader, 'COMMIT'), '', "$change: it ends");
	leave($reader);
}

# ---- sessions that pin most of the cache ----
$node->safe_psql('postgres', q{
	CREATE TABLE big AS SELECT k, posterior.context(sin(g * k), g::float8 ORDER BY g) AS value
		FROM generate_series(1, 4) k, generate_series(1, 400) g GROUP BY k;
});
sub hold
{
	my ($k) = @_;
	my $s = session($node);
	like(ask($s, "BEGIN; DECLARE answers CURSOR FOR SELECT posterior.predict(value, i)
				FROM big, generate_series(1, 1000) i WHERE k = $k;
		FETCH 1 FROM answers"), qr/mixture|bars|gaussian/, "$k is held");
	$s->{pid} = ask($s, 'SELECT pg_backend_pid()');
	return $s;
}
my $large = 'SELECT fill(1, 1000)';
my $private = cache('private');
$node->safe_psql('postgres', $large);
is(cache('private'), $private, 'a large one finds room');
my $rounds = 0;
for my $end (
	[ 'the session ends', sub { leave($_[0]) } ],
	[ 'it is terminated',
			sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend($_[0]->{pid})") } ],
	[ 'an error ends the transaction', sub { ask($_[0], 'SELECT 1 / 0') } ],
	[ 'the cursor is closed', sub { ask($_[0], 'CLOSE answers') } ])
{
	my ($how, $do) = @$end;
	my @holders = map { hold($_) } 1 .. 4;
	$private = cache('private');
	$node->safe_psql('postgres', $large);
	cmp_ok(cache('private'), '>', $private, "$how: while so much is held there is no room");
	$do->($_) for @holders;
	if (++$rounds <= 2)
	{
		$node->poll_query_until('postgres',
				"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid IN ("
				. join(', ', map { $_->{pid} } @holders) . '))') or die 'still there';
	}
	$private = cache('private');
	$node->safe_psql('postgres', $large);
	is(cache('private'), $private, "$how: then there is room again");
	# A terminated session reports that when it is closed.
	if ($rounds > 1)
	{
		eval { leave($_) } for @holders;
	}
}

# ---- a session that waits for another one's encoding has a pin of it ----
my $long = q{SELECT posterior.predict(c, 0.5::float8)
	FROM (SELECT posterior.context(sin(g), g::float8 ORDER BY g) AS c
		FROM generate_series(1, 20000) g) s};
for my $how ('terminate', 'cancel')
{
	my $entries = cache('entries');
	my ($builder, $waiter) = (session($node), session($node));
	my @pids = map { ask($_, 'SELECT pg_backend_pid()') } ($builder, $waiter);
	# Sends the long statement; true when its session waits or encodes.
	my $begin = sub {
		my ($s, $pid) = @_;
		$s->{in} .= "$long;\n";
		$s->{run}->pump_nb;
		return $node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity
			WHERE pid = $pid AND wait_event_type = 'Extension'");
	};
	ok($begin->($builder, $pids[0]), "$how: an encoding is made");
	is(cache('entries'), $entries + 1, "$how: and has an entry");
	ok($begin->($waiter, $pids[1]), "$how: another session waits for it");
	$node->safe_psql('postgres', "SELECT pg_${how}_backend($pids[1])");
	ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity
		WHERE pid = $pids[1] AND state = 'active')"), "$how: it does so no more");
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pids[0])");
	eval { leave($_) } for $builder, $waiter;
	ok($node->poll_query_until('postgres',
			"SELECT entries = $entries FROM posterior.stat_cache()"), "$how: the entry has gone");
}
$node->stop;
done_testing();
