# What one session has solved of a context's sums answers others, which see their own rows; it stays
# as long as a call site uses it, and gives way to others when none does.
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

my $node = PostgreSQL::Test::Cluster->new('solved');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.cache_size = '24MB'
	posterior.device = cpu
	posterior.maintenance_delay = -1
	posterior.model = 'tabular_sums'
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t AS SELECT i, sin(i * 0.7) a, cos(i * 0.3) b, sin(i * 1.1) c, cos(i * 1.7) d,
		sin(i * 0.1) + cos(i * 0.3) y FROM generate_series(1, 500) i;
	SELECT posterior.create_context('c', 't', 'y', '{a,b,c,d}');
	CREATE TABLE v AS SELECT posterior.sums('c') s;
});
my $predict = q{SELECT posterior.predict('c', q) FROM generate_series(1, 8) i,
	LATERAL (SELECT i / 10.0::float8 a, 0.2::float8 b, 0.1::float8 c, 0.4::float8 d) q};
my $value = q{SELECT posterior.predict(s, 0.1, 0.2, 0.1, 0.4) FROM v};
my $insert = 'INSERT INTO t SELECT 1000, random(), random(), random(), random(), random()';

sub query { return $node->safe_psql('postgres', $_[0]) }
sub bytes { return query('SELECT bytes FROM posterior.stat_cache()') }
sub counts
{
	return query(q{SELECT skips, deltas, reads, private FROM posterior.stat_contexts
		WHERE name = 'c'});
}
sub right { return query("SET posterior.cache = off; $predict") }

# ---- sessions ------------------------------------------------------------------------------------
my $right = right();
is(query($predict), $right, 'a session solves the sums');
my @before = split /\|/, counts();
my $one = bytes();
is(query($predict), $right, 'another one has the same answers');
my @after = split /\|/, counts();
is($after[0], $before[0] + 1, 'without opening the sums');
is("@after[1 .. 3]", "@before[1 .. 3]", 'or reading rows');
is(bytes(), $one, 'or more memory');
is(query("SET posterior.cache = verify; $predict"), $right, 'which are those of the rows');

# ---- snapshots -----------------------------------------------------------------------------------
my $old = session($node);
ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
query($insert);
my $new = right();
isnt($new, $right, 'a row changes the answers');
is(query($predict), $new, 'of a snapshot that shows it');
is(ask($old, $predict), $right, 'and of no other');
is(query("BEGIN; $insert; $predict; ROLLBACK") =~ tr/\n//, 7, 'what is rolled back is solved');
is(query($predict), $new, 'and answers nobody');
is(ask($old, $predict), $right, 'nor an old snapshot');
leave($old);

# ---- values --------------------------------------------------------------------------------------
my $of_value = query($value);
my $two = bytes();
is(query($value), $of_value, 'a value has the same answer in another session');
is(bytes(), $two, 'without more memory');
is(query("SET posterior.cache = off; $value"), $of_value, 'that of no cache');
is(query("SET posterior.cache = verify; $value"), $of_value, 'as it is verified');
query("UPDATE v SET s = posterior.sums('c')");
isnt(query($value), $of_value, 'another value has another');

# ---- memory --------------------------------------------------------------------------------------
# Some solutions of a context stay, whatever is written and asked.
sub write_and_ask
{
	my ($n) = @_;
	query("$insert; $predict;" x $n);
	return bytes();
}
my $most = write_and_ask(12) + 100000;	# notes differ
cmp_ok(write_and_ask(12), '<=', $most, 'a context has its share of the memory');

for my $end ('COMMIT', 'terminate')
{
	my $reader = session($node);
	my @answers = split /\n/, right();
	is(ask($reader, "BEGIN; DECLARE answers CURSOR FOR $predict; FETCH 2 FROM answers"),
		join("\n", @answers[0, 1]), "$end: a cursor has asked");
	write_and_ask(12);
	# other models and contexts want the memory
	query(qq{SET posterior.model = 'tabular_small'; SELECT posterior.predict(c, 0.5::float8) FROM
		(SELECT posterior.context(g + random(), g::float8 ORDER BY g) c
		FROM generate_series(1, 400) g, generate_series(1, 40) k GROUP BY k) s});
	is(ask($reader, 'FETCH 2 FROM answers'), join("\n", @answers[2, 3]),
		"$end: it goes on with the same solution");
	if ($end eq 'COMMIT')
	{
		ask($reader, 'COMMIT');
		leave($reader);
	}
	else
	{
		query(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'});
		$reader->{run}->finish;
		$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity
			WHERE backend_type = 'client backend'}) or die 'it does not end';
	}
	cmp_ok(write_and_ask(12), '<=', 24 * 1024 * 1024, "$end: and gives way");
	is(query($predict), right(), "$end: answers stay those of the rows");
}

# ---- without room --------------------------------------------------------------------------------
$node->append_conf('postgresql.conf', "posterior.cache_size = '64kB'");
$node->restart;
my $alone = query($predict);
is((split /\|/, counts())[3], 0, 'where there is no room a session solves the stored sums');
is($alone, right(), 'with the same answers');
is(query($value), query("SET posterior.cache = off; $value"), 'values as well');
$node->stop;
done_testing();
