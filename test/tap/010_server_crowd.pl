# Two hundred sessions on one server process for devices, with contexts that together need many times the memory that it may use: all answers are right, the
# limit holds, and when the sessions have gone, or were ended in the middle of a question, nothing of theirs is left in the server: by its own account, and by the
# operating system's.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Restart;
use Test::More;
use Time::HiRes qw(sleep time);

my $clients = 200;
my $contexts = 60;
my $limit = 20 << 20;

my $node = PostgreSQL::Test::Cluster->new('crowd');
$node->init;
$node->append_conf('postgresql.conf', qq{
	shared_preload_libraries = 'pg_posterior'
	max_connections = 220
	shared_buffers = 32MB
	posterior.server_device = cpu
	posterior.device = cuda
	posterior.device_threshold = 0
	posterior.device_memory = '@{[$limit >> 20]}MB'
	posterior.cache_size = '32MB'
	posterior.model = 'tabular_small'
	posterior.maintenance_delay = -1
	restart_after_crash = on
});
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t AS SELECT i, sin(i * 0.1) AS y, i * 0.1 AS x, cos(i * 0.3) AS z FROM generate_series(1, 300) i;
	CREATE TABLE c AS SELECT k, posterior.context(y, x, z) AS ctx FROM t, generate_series(1, $contexts) k WHERE i <= 200 + k GROUP BY k;
	CREATE TABLE stop (wave int);
	CREATE TABLE asked (pid int, questions int);
	SET posterior.device = cpu;
	CREATE TABLE truth AS SELECT k, posterior.mean(posterior.predict(ctx, 1, 2)) AS value FROM c;
});

# One value from the running server; it may take a moment to answer.
sub server
{
	for (1 .. 100)
	{
		my $value = $node->safe_psql('postgres', "SELECT $_[0] FROM posterior.stat_server");
		return $value if $value ne '';
		sleep(0.1);
	}
	return '';
}

sub wait_until
{
	my ($query, $value, $what) = @_;
	ok($node->poll_query_until('postgres', $query, $value), $what);
}

# Kilobytes that the server process occupies and files that it has open, where the system tells.
sub process
{
	my ($pid) = @_;
	my $kilobytes = -r "/proc/$pid/status" && slurp_file("/proc/$pid/status") =~ /^VmRSS:\s+(\d+) kB/m ? $1 : undef;
	my @files = -r "/proc/$pid/fd" ? glob("/proc/$pid/fd/*") : ();
	return ($kilobytes, scalar @files);
}

# The same once at most so many files are open: who asked last may not have hung up yet.
sub settled_process
{
	my ($pid, $most) = @_;
	my @found = process($pid);
	for (my $i = 0; $found[1] > $most && $i < 200; $i++)
	{
		sleep(0.05);
		@found = process($pid);
	}
	return @found;
}

# Every client asks about contexts in turn until it is told to stop, every second one without a cache, so that its encodings are its own.
my $script = $node->data_dir . '/../crowd.sql';
open(my $f, '>', $script) or die;
print $f q{
	DO $$
	DECLARE value float8; n int := 0; kk int := pg_backend_pid();
	BEGIN
		PERFORM set_config('posterior.cache', CASE WHEN pg_backend_pid() % 2 = 0 THEN 'on' ELSE 'off' END, false);
		LOOP
			kk := 1 + (kk + 7) % } . $contexts . q{;
			SELECT posterior.mean(posterior.predict(ctx, 1, 2)) INTO value FROM c WHERE k = kk;
			IF value IS DISTINCT FROM (SELECT r.value FROM truth r WHERE k = kk) THEN RAISE 'wrong answer'; END IF;
			n := n + 1;
			EXIT WHEN EXISTS (SELECT FROM stop);
			PERFORM pg_sleep(random() * 0.2);
		END LOOP;
		INSERT INTO asked VALUES (pg_backend_pid(), n);
	END $$;
};
close $f;

sub begin_wave
{
	my %p = (out => '', err => '');
	$node->safe_psql('postgres', 'TRUNCATE stop, asked');
	$p{run} = IPC::Run::start([ 'pgbench', '-n', '-c', $clients, '-j', 1, '-t', 1, '-f', $script, $node->connstr('postgres') ],
		'<', \'', '>', \$p{out}, '2>', \$p{err});
	return \%p;
}

wait_until("SELECT state FROM posterior.stat_server", 'ready', 'the server is ready');
my $pid = server('pid');
my $one = 'SELECT posterior.mean(posterior.predict(ctx, 1, 2)) FROM c WHERE k = 1';
$node->safe_psql('postgres', $one);
wait_until('SELECT clients = 1 FROM posterior.stat_server', 't', 'nobody is connected');
my ($base, $base_files) = process($pid);
my $needed = server('memory_used') * 1.0;

# ---- two waves -------------------------------------------------------------------------------------------------------

my @after;
for my $wave (1, 2)
{
	my $crowd = begin_wave();
	wait_until("SELECT clients > $clients FROM posterior.stat_server", 't', "wave $wave: $clients clients at once");
	my $most = 0;
	my $evictions = server('evictions');
	for (1 .. 40)
	{
		my $used = server('memory_used');
		$most = $used if $used > $most;
		sleep(0.05);
	}
	wait_until("SELECT evictions > $evictions + $contexts FROM posterior.stat_server", 't', 'their contexts drive each other out');
	$node->safe_psql('postgres', 'INSERT INTO stop VALUES (1)');
	ok($crowd->{run}->finish, 'all sessions end well') or diag($crowd->{err});
	unlike($crowd->{err}, qr/ERROR/, 'without an error, and with right answers');
	is($node->safe_psql('postgres', 'SELECT count(DISTINCT pid) FROM asked WHERE questions > 0'), $clients, 'every one was answered');
	cmp_ok($most, '<=', $limit, "never more than posterior.device_memory: $most bytes at most");
	wait_until('SELECT clients = 1 AND waiting = 0 FROM posterior.stat_server', 't', 'all have gone');
	cmp_ok(server('memory_used'), '<=', $limit, 'what stays is within the limit');
	push @after, [ settled_process($pid, $base_files) ];
}
is(server('pid'), $pid, 'it is one and the same server');
is(server('failures'), '0', 'no question has failed');

SKIP:
{
	skip 'the system does not tell what a process has', 3 unless defined $base && defined $after[1][0];
	diag("resident: $base kB before, $after[0][0] kB and $after[1][0] kB after");
	# as much as it may hold of models and encodings, some more for what passes through
	cmp_ok($after[0][0], '<=', $base + ($limit >> 10) + 16384, 'the process holds little beyond that');
	cmp_ok($after[1][0], '<=', $after[0][0] + 4096, 'and no more after another wave');
	cmp_ok($after[1][1], '<=', $base_files, 'no socket and no memory file is left open');
}

# ---- ended in the middle ---------------------------------------------------------------------------------------------

{
	my ($encodings, $memory) = (server('encodings'), server('memory_used'));
	my $crowd = begin_wave();
	wait_until("SELECT clients > $clients FROM posterior.stat_server", 't', 'a third wave');
	wait_until('SELECT waiting > 0 FROM posterior.stat_server', 't', 'questions are waiting');
	is($node->safe_psql('postgres', "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE '%FROM stop%' AND pid <> pg_backend_pid()"), $clients,
		'every one of them');
	$crowd->{run}->finish;
	like($crowd->{err}, qr/terminating connection due to administrator command/, 'is ended, in the middle of its questions');
	wait_until('SELECT clients = 1 AND waiting = 0 FROM posterior.stat_server', 't', 'all have gone');
	cmp_ok(server('memory_used'), '<=', $limit, 'within the limit');
	is(server('failures'), '0', 'no question has failed');
	my ($kilobytes, $files) = settled_process($pid, $base_files);
	SKIP:
	{
		skip 'the system does not tell what a process has', 2 unless defined $kilobytes;
		cmp_ok($kilobytes, '<=', $after[1][0] + 4096, 'no memory is left behind');
		cmp_ok($files, '<=', $base_files, 'nor a socket, nor a memory file');
	}
}

# ---- killed in the middle: PostgreSQL starts over, and so does the server ------------------------------------------------

{
	my $crowd = begin_wave();
	wait_until("SELECT clients > $clients FROM posterior.stat_server", 't', 'a fourth wave');
	my $victim = $node->safe_psql('postgres', "SELECT min(pid) FROM pg_stat_activity WHERE query LIKE '%FROM stop%' AND pid <> pg_backend_pid()");
	my $logged = -s $node->logfile;
	kill 'KILL', $victim;
	$crowd->{run}->finish;
	wait_for_restart($node, $logged);
	ok($node->poll_query_until('postgres', "SELECT state = 'ready' AND pid <> $pid FROM posterior.server_state()", 't'), 'another server');
	is(server('memory_used'), '0', 'which holds nothing');
	is($node->safe_psql('postgres', $one), $node->safe_psql('postgres', "SET posterior.device = cpu; $one"), 'and answers');
	cmp_ok(server('memory_used'), '<=', $needed, 'with no more memory than the first one needed');
	my $ended = 0;
	for (1 .. 100) { $ended = !kill(0, $pid); last if $ended; sleep(0.1) }
	ok($ended, 'the old one is gone, with all that it held');
}

$node->stop;
done_testing();
