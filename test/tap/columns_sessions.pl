# Models of the architecture columns in many sessions: weights and encodings lie in shared memory
# once, rows wait for a boundary where a context says so, and encoding shows its progress and ends
# when it is cancelled.
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

my $models = $ENV{TEST_MODELS};
my $node = PostgreSQL::Test::Cluster->new('columns');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.maintenance_delay = -1
	posterior.cache_size = '512MB'
	posterior.threads = 1
});
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	SELECT posterior.load_model('columns', '$models/columns/columns.safetensors');
	CREATE TABLE wide AS SELECT i AS id, sin(i) AS y, sin(i * 0.1) AS a, cos(i * 0.3) AS b,
		sin(i * 0.7) AS c, cos(i * 1.1) AS d, sin(i * 1.3) AS e, cos(i * 1.7) AS f,
		sin(i * 1.9) AS g, cos(i * 2.1) AS h, sin(i * 2.3) AS j, cos(i * 2.7) AS k
		FROM generate_series(1, 800) i;
	CREATE TABLE narrow AS SELECT i AS id, sin(i) AS y, i * 0.1 AS x FROM generate_series(1, 40) i;
	ALTER TABLE narrow ADD PRIMARY KEY (id);
	SELECT posterior.create_context('wide', 'wide', 'y', '{a,b,c,d,e,f,g,h,j,k}', 'id', 'columns',
		estimators => 32);
	SELECT posterior.create_context('narrow', 'narrow', 'y', '{x}', 'id', 'columns',
		freshness => 'bounded');
});

# ---- rows that wait ------------------------------------------------------------------------------

my $ask = q{SELECT posterior.predict('narrow', q) FROM (SELECT 0.5::float8 AS x) q};
my $counted = q{SELECT concat_ws(' ', skips, deltas, reads, rebuilds, private, rows, waiting_rows)
	FROM posterior.stat_contexts WHERE name = 'narrow'};
# How counters grow with a statement; rows and rows that wait are as they are then. The answer must
# be the one without the cache.
sub growth
{
	my ($statement) = @_;
	my @before = split / /, $node->safe_psql('postgres', $counted);
	my $answer = $node->safe_psql('postgres', "$statement $ask");
	my @after = split / /, $node->safe_psql('postgres', $counted);
	my $fresh = $node->safe_psql('postgres', "SET posterior.cache = off; $statement $ask");
	return join(' ', map({ $after[$_] - $before[$_] } 0 .. 4), @after[ 5, 6 ])
		. ($answer eq $fresh && $answer ne '' ? '' : ' differs');
}
sub change { $node->safe_psql('postgres', $_[0]) }

is(growth(''), '0 0 0 1 0 40 0', 'encoded');
is(growth(''), '1 0 0 0 0 40 0', 'nothing has changed');
change('INSERT INTO narrow VALUES (41, 1, 1), (42, 2, 2)');
is(growth(''), '0 1 0 0 0 40 2', 'new rows are counted, and wait');
is(growth(''), '1 0 0 0 0 40 2', 'and nothing has changed again');
change('INSERT INTO narrow VALUES (43, NULL, 1)');
is(growth(''), '0 1 0 0 0 40 2', 'a row without a target does not count');
is(growth('BEGIN; INSERT INTO narrow VALUES (44, 1, 1);'), '1 0 0 0 0 40 3', 'an own row waits');
is(growth('BEGIN; INSERT INTO narrow SELECT i, i, i FROM generate_series(44, 49) i;'),
	'0 0 0 0 1 48 0', 'own rows reach the boundary');
change('UPDATE narrow SET y = 3 WHERE id = 42');
is(growth(''), '0 0 1 0 0 40 2', 'a row that waits has changed: read, and encoded already');
change('INSERT INTO narrow VALUES (0, 1, 1)');
is(growth(''), '0 0 0 1 0 40 3', 'a row before the boundary: encoded');
change('INSERT INTO narrow SELECT i, i, i FROM generate_series(50, 54) i');
is(growth(''), '0 0 0 1 0 48 0', 'the boundary is reached');
change(q{SELECT posterior.alter_context('narrow', freshness => 'exact')});
is(growth(''), '0 0 0 1 0 48 0', 'exact');
change('INSERT INTO narrow VALUES (55, 1, 1)');
is(growth(''), '0 0 0 1 0 49 0', 'each row at once');

# ---- dumps ---------------------------------------------------------------------------------------

change(q{SELECT posterior.alter_context('narrow', freshness => 'bounded', estimators => 3)});
$node->safe_psql('postgres', 'CREATE DATABASE restored');
my $dump = $node->data_dir . '/../columns.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'dumped');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump,
		'-d', $node->connstr('restored') ], 'restored');
is($node->safe_psql('restored',
	'SELECT name, estimators, freshness FROM posterior.contexts ORDER BY name'),
	"narrow|3|bounded\nwide|32|exact", 'with estimators and freshness');
is($node->safe_psql('restored', $ask), $node->safe_psql('postgres', $ask), 'and the same answer');

# ---- progress and cancel -------------------------------------------------------------------------

my $wide = q{SELECT posterior.predict('wide', q) FROM (SELECT 0.1::float8 AS a, 0.2::float8 AS b,
	0.3::float8 AS c, 0.4::float8 AS d, 0.5::float8 AS e, 0.6::float8 AS f, 0.7::float8 AS g,
	0.8::float8 AS h, 0.9::float8 AS j, 1.0::float8 AS k) q};
# Lets a stopped process go on, looks at its progress until it has moved or its statement has ended,
# and stops the process: nothing depends on its speed, or on that of a new session.
$node->safe_psql('postgres', q{
	CREATE FUNCTION see_progress(backend int, OUT lines text[]) LANGUAGE plpgsql AS $$
	DECLARE
		line text;
	BEGIN
		lines := '{}';
		EXECUTE format('COPY (SELECT WHERE false) TO PROGRAM ''kill -CONT %s''', backend);
		LOOP
			SELECT concat_ws('|', phase, done, total) INTO line FROM posterior.stat_progress
				WHERE pid = backend AND name = 'wide' AND phase = 'encoding prefix' AND done > 0;
			IF line IS NOT NULL AND line <> ALL (lines) THEN
				lines := lines || line;
			END IF;
			EXIT WHEN cardinality(lines) = 2 OR EXISTS (SELECT FROM pg_stat_activity
				WHERE pid = backend AND state = 'idle' AND query_start > now());
			PERFORM pg_sleep(0.001), pg_stat_clear_snapshot();
		END LOOP;
		EXECUTE format('COPY (SELECT WHERE false) TO PROGRAM ''kill -STOP %s''', backend);
	END $$});
my $encoder = session($node);
my $pid = ask($encoder, 'SELECT pg_backend_pid()');
my @seen;
for (1 .. 10)
{
	kill 'STOP', $pid;
	$encoder->{in} .= "$wide;\n";
	$encoder->{run}->pump_nb while length $encoder->{in};
	@seen = split /\n/, $node->safe_psql('postgres', "SELECT unnest(see_progress($pid))");
	last if $node->safe_psql('postgres', "SELECT phase FROM posterior.stat_progress
		WHERE pid = $pid") eq 'encoding prefix' && @seen == 2;
	# it was too fast, and encodes other rows
	kill 'CONT', $pid;
	ask($encoder, 'UPDATE wide SET y = y + 1; SELECT posterior.stat_reset()');
}
is(scalar(@seen), 2, 'progress moves while rows are encoded');
is(scalar(grep { !/^encoding prefix\|\d+\|800$/ } @seen), 0, 'within its total');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
kill 'CONT', $pid;
like(ask($encoder, 'SELECT 1'), qr/canceling statement due to user request/, 'cancelled');
is(ask($encoder, 'SELECT count(*) FROM posterior.stat_progress'), '0', 'no progress is left');
like(ask($encoder, "SET statement_timeout = '150ms'; $wide"),
	qr/canceling statement due to statement timeout/, 'a timeout while rows are encoded');
leave($encoder);

# ---- memory --------------------------------------------------------------------------------------

# Memory that a process shares with no other, in kB.
sub private_memory
{
	my $kilobytes = 0;
	$kilobytes += $_ for slurp_file("/proc/$_[0]/smaps_rollup") =~ /^Private_\w+:\s+(\d+) kB/mg;
	return $kilobytes;
}
my $answer = $node->safe_psql('postgres', $wide);
my $bytes = $node->safe_psql('postgres',
	q{SELECT bytes FROM posterior.stat_contexts WHERE name = 'wide'});
cmp_ok($bytes, '>', 24e6, 'an encoding of this size');
SKIP:
{
	skip 'no smaps_rollup', 17 if !-r '/proc/self/smaps_rollup';
	my @sessions = map { session($node) } 1 .. 8;
	my @pids = map { ask($_, 'SELECT pg_backend_pid()') } @sessions;
	my @before = map { private_memory($_) } @pids;
	is(ask($_, $wide), $answer, 'the answer of another session') for @sessions;
	for (0 .. 7)
	{
		cmp_ok(private_memory($pids[$_]) - $before[$_], '<', 12 * 1024,
			'which adds a fraction of the encoding');
	}
	is($node->safe_psql('postgres', q{SELECT count(*) FROM posterior.stat_contexts
		WHERE name = 'wide' AND rebuilds = 1}), '1', 'encoded once');
	leave($_) for @sessions;
}

$node->stop;
done_testing();
