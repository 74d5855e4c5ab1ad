# The server process for devices is killed by signals while it starts, encodes, answers and idles,
# beside a worker that encodes ahead through it and a writer: sessions get the right answer or
# SQLSTATE 58000, none of them ends, and the next server has what it needs.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use DeviceServer qw(device_server);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;
use Time::HiRes qw(sleep);

my $node = device_server('killed', "posterior.maintenance_delay = 10\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t AS SELECT i, sin(i * 0.1) AS y, i * 0.1 AS x, cos(i * 0.3) AS z
		FROM generate_series(1, 1500) i;
	CREATE TABLE c AS SELECT posterior.context(y, x, z) AS ctx FROM t WHERE i <= 300;
	CREATE TABLE n AS SELECT * FROM t WHERE i <= 300;
	SELECT posterior.create_context('n', 'n', 'y', features => '{x,z}', order_by => 'i')});

my $small = q{SELECT posterior.mean(posterior.predict('n', q))
		FROM (SELECT 1.0::float8 AS x, 2.0::float8 AS z) q};
# A statement that keeps the server busy in each phase.
my %busy = (
	encodes => 'SELECT posterior.mean(posterior.predict(c, 1, 2))
			FROM (SELECT posterior.context(y + %d, x, z) AS c FROM t) s',
	answers => 'SELECT sum(s.y) FROM c,
			posterior.sample(ctx, ARRAY(SELECT ROW(x, z) FROM t WHERE i <= 40), 1000, %d) s',
	appends => $small);

sub server
{
	my ($columns) = @_;

	return $node->safe_psql('postgres', "SELECT $columns FROM posterior_internal.server_state()");
}


sub ready
{
	$node->poll_query_until('postgres',
		q{SELECT state = 'ready' FROM posterior_internal.server_state()})
		or die 'no server';
	return server('pid');
}

# Kill a process that may have ended already.
sub signal
{
	my ($signal, $pid) = @_;
	die 'no server' unless $pid;
	return kill($signal, $pid) == 1;
}

my $keeper = session($node);
ask($keeper, 'SET posterior.on_device_error = cpu');
my $strict = session($node);
ask($strict, "\\set VERBOSITY verbose\n");
my ($round, $ends) = (0, 0);
for my $kill ([ 'rests', 'TERM' ], [ 'encodes', 'KILL' ], [ 'answers', 'SEGV' ],
	[ 'appends', 'KILL' ], [ 'starts', 'TERM' ])
{
	my ($phase, $signal) = @$kill;
	my $name = "$signal while it $phase";
	my $question = sprintf($busy{$phase} // $small, ++$round);
	my $pid = ready();
	$node->safe_psql('postgres',
			'INSERT INTO n SELECT i + 100000, sin(i), i, i FROM generate_series(1, 200) i')
		if $phase eq 'appends';
	my $expected = $node->safe_psql('postgres',
		"SET posterior.device = cpu; SET posterior.cache = off; $question");
	if ($phase eq 'starts')
	{
		signal('KILL', $pid);
		$node->poll_query_until('postgres',
				"SELECT coalesce(pid, 0) NOT IN (0, $pid) FROM posterior_internal.server_state()")
			or die 'no server';
		$pid = server('pid');
	}
	$keeper->{out} = '';
	$keeper->{in} .= "$question;\n\\echo done\n";
	$keeper->{run}->pump_nb while length $keeper->{in};
	sleep($phase eq 'rests' || $phase eq 'starts' ? 0 : 0.05 * (1 + $round % 3));
	$ends += signal($signal, $pid);
	my $said = ask($strict, $question);
	$keeper->{run}->pump until $keeper->{out} =~ /^done$/m;
	(my $kept = $keeper->{out}) =~ s/\n?done\n$//;
	is($kept, $expected, "$name: answered all the same");
	ok($said eq $expected || $said =~ /^ERROR:  58000: /, "$name: right, or 58000") or diag($said);
	ready();
	is(ask($strict, $small),
		$node->safe_psql('postgres',
		"SET posterior.device = cpu; SET posterior.cache = off; $small"),
		"$name: right afterwards");
	isnt(server('pid'), $pid, "$name: by another server");
}
is($ends, $round, 'every server was there to be killed');
leave($_) for $keeper, $strict;
$node->safe_psql('postgres', 'INSERT INTO n SELECT * FROM t WHERE i = 301');
my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM n');
ok($node->poll_query_until('postgres', "SELECT rows = $rows FROM posterior.stat_contexts"),
		'the worker encodes ahead');
unlike(slurp_file($node->logfile),
	qr/(server process|background worker "posterior worker[^"]*") \(PID \d+\) was terminated|PANIC/,
	'no process of PostgreSQL has crashed');
$node->stop;

done_testing();
