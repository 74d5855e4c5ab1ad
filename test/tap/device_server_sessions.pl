# A hundred sessions on one server process for devices, with contexts that together need many
# times its memory limit: all answers are right and the limit holds. When the sessions have ended,
# by themselves or in the middle of a request, the server holds nothing of them, by its own account
# and by the operating system's.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use DeviceServer;
use IPC::Run;
use Memory;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Restart;
use Test::More;
use Time::HiRes qw(sleep);

my $clients = 100;
my $contexts = 60;
my $limit = 10 << 20;

my $node = device_server('crowd', qq{
	max_connections = 120
	shared_buffers = 32MB
	posterior.device_memory = '@{[$limit >> 20]}MB'
	posterior.cache_size = '32MB'
	posterior.maintenance_delay = -1
	restart_after_crash = on
});
# Freed memory goes back to the system at once, so that the resident size is what is in use.
{
	local @ENV{map { "MALLOC_$_" } qw(MMAP_THRESHOLD_ MMAP_MAX_ TRIM_THRESHOLD_ ARENA_MAX)}
		= (32768, 1000000, 0, 1);
	$node->start;
}
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t AS SELECT i, sin(i * 0.1) AS y, i * 0.1 AS x, cos(i * 0.3) AS z
		FROM generate_series(1, 100) i;
	CREATE TABLE c AS SELECT k, posterior.context(y, x, z) AS ctx
		FROM t, generate_series(1, $contexts) k WHERE i <= 20 + k GROUP BY k;
	CREATE TABLE stop (wave int);
	CREATE TABLE asked (pid int, questions int);
	SET posterior.device = cpu;
	CREATE TABLE truth AS SELECT k, posterior.mean(posterior.predict(ctx, 1, 2)) AS value FROM c;
});

# Resident kilobytes of the server process, where the system tells.
sub kilobytes
{
	my ($pid) = @_;
	return -r "/proc/$pid/status"
		&& slurp_file("/proc/$pid/status") =~ /^VmRSS:\s+(\d+) kB/m ? $1 : undef;
}

sub open_files
{
	my ($pid) = @_;
	my @files = -r "/proc/$pid/fd" ? glob("/proc/$pid/fd/*") : ();
	return scalar @files;
}

# Open files once they are at most so many: the last session's socket may still be open.
sub settled_files
{
	my ($pid, $most) = @_;
	my $found = open_files($pid);
	for (my $i = 0; $found > $most && $i < 10 * $PostgreSQL::Test::Utils::timeout_default; $i++)
	{
		sleep(0.1);
		$found = open_files($pid);
	}
	return $found;
}

# The highest resident size stops rising: among at most 20 waves three do not raise it.
sub stops_rising
{
	my ($pid, $wave, $what) = @_;
	SKIP:
	{
		skip 'the system does not tell what a process has', 1 unless defined kilobytes($pid);
		my @sizes;
		while (calm(@sizes) < 3 && @sizes < 20)
		{
			$wave->();
			push @sizes, kilobytes($pid);
		}
		is(calm(@sizes), 3, $what);
		note("kB after each wave: @sizes");
	}
}

# Every client predicts from the contexts in turn until it is told to stop, or :questions times;
# every second one without a cache, so that its encodings are its own.
my $script = $node->data_dir . '/../crowd.sql';
open(my $f, '>', $script) or die;
print $f q{
	SELECT set_config('test.questions', :questions::text, false);
	DO $$
	DECLARE value float8; n int := 0; kk int := pg_backend_pid();
	BEGIN
		PERFORM set_config('posterior.cache', CASE WHEN pg_backend_pid() % 2 = 0 THEN 'on'
			ELSE 'off' END, false);
		LOOP
			kk := 1 + (kk + 7) % } . $contexts . q{;
			SELECT posterior.mean(posterior.predict(ctx, 1, 2)) INTO value FROM c WHERE k = kk;
			IF value IS DISTINCT FROM (SELECT r.value FROM truth r WHERE k = kk)
				THEN RAISE 'wrong answer'; END IF;
			n := n + 1;
			EXIT WHEN n = current_setting('test.questions')::int OR EXISTS (SELECT FROM stop);
			PERFORM pg_sleep(random() * 0.2) WHERE current_setting('test.questions') = '0';
		END LOOP;
		INSERT INTO asked VALUES (pg_backend_pid(), n);
	END $$;
};
close $f;

# begin_wave(CLIENTS, QUESTIONS): QUESTIONS predictions of each client, or, with 0, until told to
# stop.
sub begin_wave
{
	my ($clients, $questions) = @_;
	my %p = (out => '', err => '');
	$node->safe_psql('postgres', 'TRUNCATE stop, asked');
	$p{run} = IPC::Run::start([ 'pgbench', '-n', '-c', $clients, '-j', 1, '-t', 1, '-D',
		"questions=$questions", '-f', $script, $node->connstr('postgres') ],
		'<', \'', '>', \$p{out}, '2>', \$p{err});
	return \%p;
}

# Ends all sessions of a wave; returns their number.
sub end_wave
{
	my ($crowd) = @_;
	my $ended = $node->safe_psql('postgres',
			"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE query LIKE '%FROM stop%' AND pid <> pg_backend_pid()");
	$crowd->{run}->finish;
	return $ended;
}

my $gone = 'SELECT clients = 1 AND waiting = 0 FROM posterior.stat_server';

wait_until("SELECT state FROM posterior.stat_server", 'ready', 'the server is ready');
my $pid = server('pid');
my $one = 'SELECT posterior.mean(posterior.predict(ctx, 1, 2)) FROM c WHERE k = 1';
$node->safe_psql('postgres', $one);
wait_until('SELECT clients = 1 FROM posterior.stat_server', 't', 'no client is connected');
my $base_files = open_files($pid);
my $needed = server('memory_used') * 1.0;

# ---- two waves -----------------------------------------------------------------------------------

for my $wave (1, 2)
{
	my $crowd = begin_wave($clients, 0);
	wait_until("SELECT clients > $clients FROM posterior.stat_server", 't',
			"wave $wave: $clients clients at once");
	my ($most, $looked, $until) = (0, 0, server('evictions') + $contexts);
	my $evictions = 0;
	while ($looked < 10 || $evictions <= $until)
	{
		(my $used, $evictions) = split(/\|/, server('memory_used, evictions'));
		$most = $used if $used > $most;
		last if ++$looked >= 10 * $PostgreSQL::Test::Utils::timeout_default;
	}
	cmp_ok($evictions, '>', $until, 'their contexts drive each other out');
	$node->safe_psql('postgres', 'INSERT INTO stop VALUES (1)');
	ok($crowd->{run}->finish, 'all sessions end well') or diag($crowd->{err});
	unlike($crowd->{err}, qr/ERROR/, 'without an error, and with right answers');
	is($node->safe_psql('postgres', 'SELECT count(DISTINCT pid) FROM asked WHERE questions > 0'),
			$clients, 'every one was answered');
	cmp_ok($most, '<=', $limit, "never more than posterior.device_memory: $most bytes at most");
	wait_until($gone, 't', 'all have gone');
	cmp_ok(server('memory_used'), '<=', $limit, 'what stays is within the limit');
	cmp_ok(settled_files($pid, $base_files), '<=', $base_files,
		'no socket and no memory file is left open');
}
is(server('pid'), $pid, 'it is one and the same server');
is(server('failures'), '0', 'no request has failed');

stops_rising($pid, sub
{
	my $crowd = begin_wave(10, 30);
	$crowd->{run}->finish or die $crowd->{err};
	$node->poll_query_until('postgres', $gone, 't') or die 'a session has stayed';
}, 'sessions that end leave no memory behind');

# ---- ended in the middle -------------------------------------------------------------------------

{
	my ($encodings, $memory) = (server('encodings'), server('memory_used'));
	my $crowd = begin_wave($clients, 0);
	wait_until("SELECT clients > $clients FROM posterior.stat_server", 't', 'a third wave');
	wait_until('SELECT waiting > 0 FROM posterior.stat_server', 't', 'requests are waiting');
	is(end_wave($crowd), $clients, 'every one of them');
	like($crowd->{err}, qr/terminating connection due to administrator command/,
		'is ended, in the middle of its requests');
	wait_until($gone, 't', 'all have gone');
	cmp_ok(server('memory_used'), '<=', $limit, 'within the limit');
	is(server('failures'), '0', 'no request has failed');
	cmp_ok(settled_files($pid, $base_files), '<=', $base_files,
		'no socket and no memory file is left open');
	stops_rising($pid, sub
	{
		my $crowd = begin_wave(10, 0);
		$node->poll_query_until('postgres', 'SELECT clients > 10 FROM posterior.stat_server', 't')
			or die 'too few have come';
		end_wave($crowd);
		$node->poll_query_until('postgres', $gone, 't') or die 'a session has stayed';
	}, 'nor do sessions that are ended');
}

# ---- killed in the middle: PostgreSQL restarts, and so does the server ---------------------------

{
	my $crowd = begin_wave($clients, 0);
	wait_until("SELECT clients > $clients FROM posterior.stat_server", 't', 'a fourth wave');
	my $victim = $node->safe_psql('postgres',
			"SELECT min(pid) FROM pg_stat_activity WHERE query LIKE '%FROM stop%'
				AND pid <> pg_backend_pid()");
	my $logged = -s $node->logfile;
	kill 'KILL', $victim;
	$crowd->{run}->finish;
	wait_for_restart($node, $logged);
	ok($node->poll_query_until('postgres',
				"SELECT state = 'ready' AND pid <> $pid
				FROM posterior_internal.server_state()", 't'),
			'another server');
	is(server('memory_used'), '0', 'which holds nothing');
	is($node->safe_psql('postgres', $one),
		$node->safe_psql('postgres', "SET posterior.device = cpu; $one"), 'and answers');
	cmp_ok(server('memory_used'), '<=', $needed, 'with no more memory than the first one needed');
	ok(has_ended($pid), 'the old one is gone, with all that it held');
}

$node->stop;
done_testing();
