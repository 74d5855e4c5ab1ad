# Contexts of large tables are made by an aggregate that several processes run: what they find is
# what one process finds, with the same rights, and they can be watched and cancelled.
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

my $node = PostgreSQL::Test::Cluster->new('scan');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = -1
	posterior.model = 'tabular_sums'
	min_parallel_table_scan_size = 0
	parallel_setup_cost = 0
	parallel_tuple_cost = 0
	parallel_leader_participation = off
	max_worker_processes = 16
	dynamic_shared_memory_type = mmap
	autovacuum = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE ROLE reader;
	GRANT CREATE ON SCHEMA public TO reader;
	SET ROLE reader;
	CREATE DOMAIN amount AS numeric;
	CREATE TABLE t AS SELECT i, sin(i * 0.7) a, (i % 7)::int2 b, chr(97 + i % 5) c, i % 3 = 0 d,
			date '2020-01-01' + i % 400 e, CASE WHEN i % 11 = 0 THEN NULL ELSE i / 7.0 END f,
			CASE WHEN i % 13 = 0 THEN NULL ELSE sin(i * 0.1) + i % 5 END y,
			CASE WHEN i % 13 = 0 THEN NULL ELSE sin(i * 0.1) + i % 5 END::float4 y4,
			(i % 100)::int yi, (i % 1000 / 8.0)::amount ya, i * 100000000000001 yb
		FROM generate_series(1, 20000) i;
	CREATE TABLE p (LIKE t) PARTITION BY LIST (b);
	CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0, 1, 2);
	CREATE TABLE p1 PARTITION OF p DEFAULT;
	INSERT INTO p SELECT * FROM t;
});

# Sums, basis and fit of a context that is made with so many workers; and what is said meanwhile.
sub made
{
	my ($workers, $arguments, $before) = @_;
	my ($said, $found);
	$node->psql('postgres', qq{SET ROLE reader; SET max_parallel_workers_per_gather = $workers;
		SET client_min_messages = debug1; SELECT posterior.create_context('c', $arguments)},
		stderr => \$said);
	$found = $node->safe_psql('postgres', q{SELECT md5(posterior.sums('c')::text),
		posterior.rows(posterior.sums('c')), md5(basis::text), md5(fit::text)
		FROM posterior.context_definition WHERE name = 'c';
		SELECT posterior.drop_context('c')});
	return ($found, $said =~ /(\d+) rows were added up, (\d+) of them by parallel/ ? $2 : -1);
}

# ---- what is found -------------------------------------------------------------------------------
my $features = q{'{a,b,c,d,e,f}'};
for my $case (
	[ 'a table', "'t', 'y', $features" ],
	[ 'a filter', qq{'t', 'y', $features, filter => 'a > 0 AND b <> 3'} ],
	[ 'partitions', "'p', 'y', $features" ],
	[ 'float4', "'t', 'y4', $features" ],
	[ 'int', "'t', 'yi', $features" ],
	[ 'bigint', "'t', 'yb', $features" ],
	[ 'a domain', "'t', 'ya', $features" ])
{
	my ($name, $arguments) = @$case;
	my ($one, $helped) = made(0, $arguments);
	is($helped, -1, "$name: one process reads the rows");
	(my $several, $helped) = made(2, $arguments);
	is($several, $one, "$name: several find the same");
	cmp_ok($helped, '>', 0, "$name: workers have added up the rows");
}


# ---- errors --------------------------------------------------------------------------------------
# What is said of a bad value is what one process says, which reads in order.
for my $case (
	[ 'a cell', '22003: feature "a" is infinite', "a = 'infinity' WHERE i = 40000" ],
	[ 'a number', '22003: a target is infinite', "y = '1e400' WHERE i = 40000" ],
	[ 'a target', '22023: .*too far', "y = 1e12 WHERE i = 40000" ])
{
	my ($name, $expected, $change) = @$case;
	my %said;
	$node->safe_psql('postgres', qq{CREATE TABLE bad AS SELECT i, sin(i) a, i % 3 b,
			cos(i)::numeric y FROM generate_series(1, 50000) i;
		SELECT posterior.create_context('bad', 'bad', 'y', '{b,a}');
		UPDATE bad SET $change; VACUUM FULL bad});
	for my $workers (0, 2)
	{
		my $said;
		$node->psql('postgres', qq{\\set VERBOSITY verbose
			SET max_parallel_workers_per_gather = $workers; SET client_min_messages = debug1;
			SELECT posterior.warm_context('bad')}, stderr => \$said);
		is($said =~ /by one process because of the error/ ? 2 : 0, $workers,
			"$name: $workers workers meet it");
		($said{$workers}) = $said =~ /(ERROR: .*)/s;
	}
	like($said{0}, qr/$expected/, 'it is refused');
	is($said{2}, $said{0}, 'in the same words');
	$node->safe_psql('postgres', 'DROP TABLE bad');
}

# ---- rights --------------------------------------------------------------------------------------
my $aggregate = 'posterior.context(posterior.context, float8, VARIADIC "any")';
$node->safe_psql('postgres', "REVOKE EXECUTE ON FUNCTION $aggregate FROM public");
my ($found, $helped) = made(2, "'t', 'y', $features");
is($helped, -1, 'without the right to the aggregate one process reads the rows');
is($found, (made(0, "'t', 'y', $features"))[0], 'and finds the same');
$node->safe_psql('postgres', "GRANT EXECUTE ON FUNCTION $aggregate TO public");
for my $workers (0, 2)
{
	my $said;
	$node->psql('postgres', qq{SET ROLE reader; SET max_parallel_workers_per_gather = $workers;
		SELECT posterior.create_context('c', 'pg_authid', 'oid', '{rolpassword}',
			maintain => 'sums')}, stderr => \$said);
	like($said, qr/permission denied|must be owner/, "$workers workers read no table of others'");
}

# ---- sums that are made anew ---------------------------------------------------------------------
my $said;
$node->safe_psql('postgres', qq{SET ROLE reader;
	SELECT posterior.create_context('c', 't', 'y', $features);
	UPDATE t SET y = y + 1 WHERE i < 5000});
my $sums = q{SELECT posterior.rows(s), md5(s::text) FROM posterior.sums('c') s};
my $noted = $node->safe_psql('postgres', $sums);
$node->safe_psql('postgres', 'VACUUM FULL t');
$node->psql('postgres', q{SET client_min_messages = debug1; SELECT posterior.warm_context('c')},
	stderr => \$said);
like($said, qr/rows were added up, [1-9]\d* of them/, 'after a rewrite workers add them up again');
is($node->safe_psql('postgres', $sums), $noted, 'to the same sums');
is($node->safe_psql('postgres', q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1;
	SELECT posterior.refresh_context('c'); COMMIT; SELECT posterior.rows(posterior.sums('c'))}),
	"1\n\n18462", 'in a transaction with one snapshot as well');

# ---- readers that do not use the sums ------------------------------------------------------------
my $question = q{SELECT posterior.predict('c', r)
	FROM (SELECT 0.3::float8 a, 2::int2 b, 'b' c, true d, date '2020-03-01' e, 7.5 f) r};
my $answer = $node->safe_psql('postgres', $question);
for my $workers (0, 2)
{
	my $out;
	$node->psql('postgres', qq{SET max_parallel_workers_per_gather = $workers;
		SET posterior.cache = off; SET client_min_messages = debug1; $question},
		stdout => \$out, stderr => \$said);
	is($out, $answer, "$workers workers: read rows give the same answer");
	like($said, qr/rows are read because posterior.cache is off/, 'being read');
	my $helped = $said =~ /rows were added up, [1-9]\d* of them/ ? 2 : 0;
	is($helped, $workers, 'by workers where there are any');
}
$node->psql('postgres', "DELETE FROM t; VACUUM FULL t; SELECT posterior.warm_context('c')",
	stderr => \$said);
like($said, qr/too few rows/, 'a model cannot be asked about no rows');
is($node->safe_psql('postgres', q{SELECT posterior.rows(posterior.sums('c'))}), '0',
	'where no row is left there are sums of none');

# ---- watching and cancelling ---------------------------------------------------------------------
# Segments of dynamic shared memory, which are files here.
sub segments
{
	return join(' ', sort map { s!.*/!!r } glob($node->data_dir . '/pg_dynshmem/mmap.*'));
}

$node->safe_psql('postgres', q{SELECT posterior.drop_context('c'); INSERT INTO t (a, b, c, y)
	SELECT random(), 1, 'x', random() FROM generate_series(1, 200000)});
my $maker = session($node);
ask($maker, q{SET posterior.kernels = reference; SET max_parallel_workers_per_gather = 2});
my $pid = ask($maker, 'SELECT pg_backend_pid()');
# sessions that have ended may still hold some
$node->poll_query_until('postgres', qq{SELECT count(*) = 0 FROM pg_stat_activity WHERE pid NOT IN
	($pid, pg_backend_pid()) AND backend_type IN ('client backend', 'parallel worker')})
	or die 'other sessions stay';
my $segments = segments();
$maker->{in} .= "SELECT posterior.create_context('c', 't', 'y', $features);\n\\echo done\n";
$maker->{run}->pump_nb while length $maker->{in};
my $done = 0;
for my $more (1 .. 3)
{
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM posterior.stat_progress
		WHERE pid = $pid AND done > $done AND phase = 'reading rows'")
		or die 'there is no progress';
	$done = $node->safe_psql('postgres', "SELECT done FROM posterior.stat_progress
		WHERE pid = $pid");
	cmp_ok($done, '>', 0, "progress, $more");
}
# on a busy machine the leader may read for a while before its workers come
ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity
	WHERE leader_pid = $pid AND backend_type = 'parallel worker'"), 'by workers');
isnt(segments(), $segments, 'which have shared memory');
is($node->safe_psql('postgres', q{SET ROLE reader; SELECT count(*) FROM posterior.stat_progress}),
	'0', 'not for roles that could not see the statement');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$maker->{run}->pump until $maker->{out} =~ /^done$/m;
like($maker->{out}, qr/canceling statement due to user request/, 'it can be cancelled');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity
	WHERE leader_pid = $pid"), 'with its workers');
is($node->safe_psql('postgres', q{SELECT count(*) FROM posterior.context_definition
	WHERE name = 'c'}), '0', 'and leaves no context');
is($node->safe_psql('postgres', 'SELECT count(*) FROM posterior.stat_progress'), '0',
	'nor progress');
ask($maker, 'SET posterior.kernels = cpu');
ask($maker, "SELECT posterior.create_context('c', 't', 'y', $features)");
is(ask($maker, "SELECT posterior.rows(posterior.sums('c'))"), '200000', 'the session can make it');
leave($maker);
# one segment is a session's until its end
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity
	WHERE pid = $pid"), 'the session ends');
is(segments(), $segments, 'and nothing is left of shared memory');
$node->stop;
done_testing();
