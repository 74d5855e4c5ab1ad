# The server process for devices, computing on the CPU: whatever happens to it fails at most the
# statements in flight; sessions go on, and no answer is wrong.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use DeviceServer;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Restart;
use Session;
use Test::More;
use Time::HiRes qw(sleep);

my $node = device_server('server', q{
	posterior.maintenance_delay = -1
	posterior.device_timeout = '1h'
	log_min_messages = debug1
	restart_after_crash = on
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t AS SELECT i, sin(i * 0.1) AS y, i * 0.1 AS x, cos(i * 0.3) AS z
		FROM generate_series(1, 5000) i;
	CREATE TABLE c AS SELECT k, posterior.context(y, x, z) AS ctx FROM t, generate_series(1, 20) k
		WHERE i <= 200 + k GROUP BY k;
	CREATE TABLE n AS SELECT * FROM t WHERE i <= 300;
	SELECT posterior.create_context('n', 'n', 'y', features => '{x,z}', order_by => 'i');
});

# A statement that takes long on any machine, and one that does not.
my $long = 'SELECT count(*) FROM c,
		posterior.sample(ctx, ARRAY(SELECT ROW(x, z) FROM t WHERE i <= 300), 2000) WHERE k = 1';
# The same for one that has to last until it is seen, by a session that a busy machine begins late.
(my $longer = $long) =~ s/2000/12000/;
my $short = 'SELECT posterior.mean(posterior.predict(ctx, 1, 2)) FROM c WHERE k = 1';
my $right = $node->safe_psql('postgres', "SET posterior.device = cpu; $short");

# ---- it answers as the session would -------------------------------------------------------------

my $first = pid_of_server();
is($node->safe_psql('postgres', $short), $right, 'the server answers as the session does');
is(server('requests > 0 AND batches > 0 AND failures = 0'), 't', 'by the server');
is($node->safe_psql('postgres', 'SELECT place, provider FROM posterior.devices'),
		"session|cpu\nserver|cpu", 'posterior.devices shows it');
ok(-S $node->data_dir . '/pgsql_tmp.pg_posterior.sock', 'its socket lies in the data directory');
is((stat(_))[2] & 0777, 0600, 'for its owner only');
is($node->safe_psql('postgres', "SET posterior.device = cpu; $short"), $right,
	'a session may keep to the CPU');

# The server is told of one target per row: several are the session's, and nothing is asked of it,
# although every answer should come from it and an error be raised where none does.
{
	my $models = $ENV{TEST_MODELS};
	$node->safe_psql('postgres', "SELECT posterior.load_model(m, '$models/' || m || '.safetensors')
		FROM unnest(ARRAY['several_mixture', 'set']) m");
	my $before = server('requests') . '|' . server('builds');
	my $several = "SET posterior.model = several_mixture;
		SELECT posterior.predict_targets(posterior.context(ARRAY[y, z], x, i / 100.0), 1, 2),
			posterior.targets(posterior.context(ARRAY[y, z], x, i / 100.0)) FROM t WHERE i <= 40";
	my $answer = $node->safe_psql('postgres', $several);
	like($answer, qr/\|2$/, 'several targets are answered');
	is($answer, $node->safe_psql('postgres', "SET posterior.device = cpu; $several"),
		'as with the CPU');
	is(server('requests') . '|' . server('builds') . '|' . server('fallbacks'), "$before|0",
		'and not by the server');
	my $set = "SET posterior.model = set;
		SELECT posterior.predict(posterior.context(y, x, z), 1, 2) FROM t WHERE i <= 40";
	is($node->safe_psql('postgres', $set),
		$node->safe_psql('postgres', "SET posterior.device = cpu; $set"),
		'a set encoder is answered by a server that computes it as the session does');
	cmp_ok(server('requests'), '>', (split /\|/, $before)[0], 'and by the server');
}

# Appends are mirrored: only new rows travel.
my $named = "SELECT posterior.mean(posterior.predict('n', q))
		FROM (SELECT 1.0::float8 AS x, 2.0::float8 AS z) q";
$node->safe_psql('postgres', $named);
my $rows = server('rows_received');
my $builds = server('builds');
$node->safe_psql('postgres', 'INSERT INTO n SELECT * FROM t WHERE i BETWEEN 301 AND 303');
is($node->safe_psql('postgres', $named),
	$node->safe_psql('postgres', "SET posterior.device = cpu; $named"), 'right after an INSERT');
$node->safe_psql('postgres', $named) for 1 .. 3;
is(server('rows_received') - $rows, 3, 'three rows have travelled');
is(server('builds') - $builds, 0, 'nothing was built');

# Small requests about an encoding of this process are computed by the session.
my $before = server('requests');
is($node->safe_psql('postgres', "SET posterior.device_threshold = 1e9; $short"), $right,
	'a small request');
is(server('requests'), $before, 'does not reach the server');
is($node->safe_psql('postgres',
	"SET posterior.device = auto; SET posterior.device_threshold = 0; $short"), $right,
	'auto uses the server that is there');
cmp_ok(server('requests'), '>', $before, 'really');

# Other requests are sent, too: evidence as one density per stage of its prefix, summaries as their
# few numbers.
my $summary = 'SELECT sum(mean + stddev + quantiles[1] + log_density)
		FROM c, posterior.predict_summary(ctx, ARRAY(SELECT ROW(x, z) FROM t WHERE i <= 70),
			\'{0.3}\', ARRAY(SELECT y FROM t WHERE i <= 70)) WHERE k = 1';
for my $question ($summary, 'SELECT posterior.log_evidence(y, x, z ORDER BY i) FROM t
			WHERE i <= 70')
{
	my $expected = $node->safe_psql('postgres', "SET posterior.device = cpu; $question");
	$before = server('requests');
	is($node->safe_psql('postgres', $question), $expected, 'as the session answers');
	cmp_ok(server('requests'), '>', $before, 'by the server');
	is($node->safe_psql('postgres', "SET posterior.device_threshold = 1e9; $question"), $expected,
		'or by the session, where it is little work');
}
my $nothing = 'SELECT posterior.log_density(ctx, NULL::float8, 0.5, 0.5) FROM c WHERE k = 1;';
for my $device ('cpu', 'cuda')
{
	is($node->safe_psql('postgres', "SET posterior.device = $device; $nothing"), '0',
		"no rows have density 1, with device $device");
}
is(server('failures'), '0', 'nothing has failed');

# ---- killed --------------------------------------------------------------------------------------

for my $signal ('KILL', 'SEGV', 'TERM')
{
	my $pid = pid_of_server();
	my $victim = begin($longer);
	wait_until("SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE '%2000)%'
			AND wait_event_type = 'Extension'", 't', 'a request is in flight');
	kill $signal, $pid;
	my ($out, $err) = finish($victim);
	# it may have been about to connect again
	my $fails = 'was lost|has failed|cannot be reached';
	like($err, qr/ERROR:  58000: the (connection to the )?posterior server ($fails)/,
		"SIG$signal: the statement in flight fails with 58000");
	like($err, qr/HINT:  Repeat the statement/, 'and a hint');
	like($out, qr/goes on/, 'its session goes on');
	is($node->safe_psql('postgres', $short), $right, 'the next statement works');
	cmp_ok(server('pid'), '!=', $pid, 'with another server');
}
my ($status, $out, $err) = (0, '', '');
{
	my $pid = pid_of_server();
	my $small = 'SELECT sum(y) FROM c,
			posterior.sample(ctx, ARRAY(SELECT ROW(x, z) FROM t WHERE i <= 20), 200) WHERE k = 1';
	my $expected = $node->safe_psql('postgres', "SET posterior.device = cpu; $small");
	my $victim = begin('SET posterior.on_device_error = cpu', $small);
	# in the middle of a request, unless its answer came before the look
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last if $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity
			WHERE query LIKE '%, 200)%' AND wait_event_type = 'Extension'}) > 0;
		$victim->{run}->pump_nb;
		last if $victim->{out} ne '';
	}
	kill 'KILL', $pid;
	($out, $err) = finish($victim);
	is($err, '', 'with on_device_error = cpu no statement fails');
	like($out, qr/^\Q$expected\E$/m, 'the answer is the same');
}

# ---- hung ----------------------------------------------------------------------------------------

{
	my $pid = pid_of_server();
	kill 'STOP', $pid;
	($status, $out, $err) = run("SET statement_timeout = '300ms'; $short; SET statement_timeout = 0;
				SELECT 'goes on';");
	like($err, qr/57014: canceling statement due to statement timeout/,
		'a server that hangs: statement_timeout works');
	like($out, qr/goes on/, 'the session goes on');
	my $victim = begin($short);
	wait_until("SELECT count(pg_cancel_backend(pid)) > 0 FROM pg_stat_activity
				WHERE query LIKE '%predict(ctx%'
		AND wait_event_type = 'Extension'", 't', 'a waiting statement is cancelled');
	($out, $err) = finish($victim);
	like($err, qr/57014: canceling statement due to user request/, 'and ends');
	$victim = begin($short);
	wait_until("SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity
				WHERE query LIKE '%predict(ctx%'
		AND wait_event_type = 'Extension'", 't', 'a waiting session is terminated');
	($out, $err) = finish($victim);
	like($err, qr/terminating connection due to administrator command/, 'and ends');
	is($node->safe_psql('postgres',
				"SELECT requests IS NULL AND state = 'ready' FROM posterior.stat_server"), 't',
			'the view does not wait for it');
	kill 'CONT', $pid;
	is($node->safe_psql('postgres', $short), $right, 'when it is there again, it answers');
	is(server('pid'), $pid, 'the same server');

	$node->safe_psql('postgres', "ALTER SYSTEM SET posterior.device_timeout = '2s'");
	$node->reload;
	$pid = pid_of_server();
	$victim = begin($longer);
	wait_until("SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE '%2000)%'
			AND wait_event_type = 'Extension'", 't', 'a request is in flight');
	kill 'STOP', $pid;
	($out, $err) = finish($victim);
	like($err, qr/58000: the connection to the posterior server was lost/,
		'it is killed when it hangs for too long');
	like($out, qr/goes on/, 'the session goes on');
	is($node->safe_psql('postgres', $short), $right, 'the next statement works');
	like(slurp_file($node->logfile), qr/posterior server is killed because it hangs/,
		'the log says so');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET posterior.device_timeout');
	$node->reload;
}

# ---- clients that go -----------------------------------------------------------------------------

{
	pid_of_server();
	my @own = ('SET posterior.cache = off', $long);
	$node->safe_psql('postgres', "SET posterior.cache = off; $short");
	wait_until('SELECT clients = 1 FROM posterior.stat_server', 't', 'no client is connected');
	my ($encodings, $memory) = (server('encodings'), server('memory_used'));
	for my $how ('pg_terminate_backend(pid)', 'pg_cancel_backend(pid)')
	{
		my @victims = map { begin(@own) } 1 .. 3;
		wait_until("SELECT encodings > $encodings FROM posterior.stat_server", 't',
				'the server works for them');
		# between two of its requests a statement does not wait
		my $running = "FROM pg_stat_activity WHERE query LIKE '%2000)%' AND state = 'active'
				AND pid <> pg_backend_pid()";
		wait_until("SELECT count(*) = 3 $running AND wait_event_type = 'Extension'", 't',
				'three requests are in flight');
		is($node->safe_psql('postgres', "SELECT count($how) $running"), '3', $how);
		finish($_) for @victims;
		wait_until("SELECT clients = 1 AND waiting = 0 AND encodings = $encodings
					AND memory_used = $memory
			FROM posterior.stat_server", 't', 'nothing stays behind');
	}
	cmp_ok(server('cancelled'), '>', 0, 'their requests were dropped');
}

# ---- memory --------------------------------------------------------------------------------------

{
	$node->safe_psql('postgres', "ALTER SYSTEM SET posterior.device_memory = '1MB'");
	$node->reload;
	wait_until("SELECT memory_limit = 1048576 FROM posterior.stat_server", 't',
			'a server with little memory');
	($status, $out, $err) = run("$short; SELECT 'goes on';");
	like($err, qr/53200: out of device memory/, 'too little for the model: 53200');
	like($err, qr/HINT:  Raise posterior.device_memory/, 'with a hint');
	like($out, qr/goes on/, 'the session goes on');
	is($node->safe_psql('postgres', "SET posterior.on_device_error = cpu; $short"), $right,
		'or the CPU answers');
	cmp_ok(server('fallbacks'), '>', 0, 'which is counted');

	# Room for the model and a few of twenty contexts.
	my $expected = $node->safe_psql('postgres',
			'SET posterior.device = cpu; SELECT k, posterior.mean(posterior.predict(ctx, 1, 2))
				FROM c ORDER BY k');
	$node->safe_psql('postgres', "ALTER SYSTEM SET posterior.device_memory = '14MB'");
	$node->reload;
	wait_until("SELECT memory_limit = 14680064 FROM posterior.stat_server", 't',
			'a server with room for some');
	my @clients = map {
			begin(('SELECT k, posterior.mean(posterior.predict(ctx, 1, 2)) FROM c
				ORDER BY k') x 3) } 1 .. 12;
	my $most = 0;
	for (1 .. 20)
	{
		my $used = server('memory_used') || 0;
		$most = $used if $used > $most;
		sleep(0.05);
	}
	my $wrong = 0;
	for my $p (@clients)
	{
		($out, $err) = finish($p);
		$wrong++ if $err ne '' || $out ne "$expected\n" x 3 . "goes on\n";
		diag($err) if $err ne '';
	}
	is($wrong, 0, 'twelve clients, twenty contexts: all answers are right');
	cmp_ok($most, '<=', 14680064, 'within posterior.device_memory');
	cmp_ok(server('evictions'), '>', 0, 'because the least recently used are evicted');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET posterior.device_memory');
	$node->reload;
	wait_until("SELECT memory_limit = 1073741824 FROM posterior.stat_server", 't', 'and back');
}

# Two models that do not fit together evict each other.
{
	my $other = 'SELECT posterior.mean(posterior.predict(ctx, 1)) FROM d';
	$node->safe_psql('postgres', 'CREATE TABLE d AS SELECT posterior.context(y, x / 300) AS ctx
				FROM t WHERE i <= 300');
	my $expected = $node->safe_psql('postgres',
		"SET posterior.device = cpu; SET posterior.model = gp1d; $other");
	$node->safe_psql('postgres', "ALTER SYSTEM SET posterior.device_memory = '9MB'");
	$node->reload;
	wait_until("SELECT memory_limit = 9437184 FROM posterior.stat_server", 't',
			'a server with room for one model');
	my $both = "SET posterior.model = gp1d; $other; SET posterior.model = tabular_small; $short;";
	is($node->safe_psql('postgres', $both x 4), join("\n", ($expected, $right) x 4),
		'two models by turns in one session');
	my @clients = map { begin(("SET posterior.model = gp1d", $other,
		"SET posterior.model = tabular_small", $short) x 3) } 1 .. 4;
	my @said = map { my ($o, $e) = finish($_); $o . $e } @clients;
	is_deeply(\@said, [ (join("\n", ($expected, $right) x 3) . "\ngoes on\n") x 4 ],
		'and in several');
	cmp_ok(server('evictions'), '>', 0, 'they give way to each other');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET posterior.device_memory');
	$node->reload;
	wait_until("SELECT memory_limit = 1073741824 FROM posterior.stat_server", 't',
			'and back again');
}

# Requests of several sessions about one context are answered in one batch: here of sessions that
# wait while the server is stopped.
{
	my $gate = 'SELECT count(*) FROM n, LATERAL posterior.predict(\'n\', n)';
	my $pid = pid_of_server();
	kill 'STOP', $pid;
	my @clients = map { begin(($gate) x 3) } 1 .. 12;
	wait_until("SELECT count(*) = 12 FROM pg_stat_activity WHERE query LIKE '%LATERAL%'
			AND wait_event_type = 'Extension'", 't', 'twelve requests wait');
	kill 'CONT', $pid;
	my $lines = 0;
	for my $p (@clients)
	{
		($out, $err) = finish($p);
		$lines += () = $out =~ /^303$/mg;
	}
	is($lines, 36, 'twelve sessions predict from one context');
	cmp_ok(server('largest_batch'), '>', 1, 'and are answered together');
}

# ---- random kills under load ---------------------------------------------------------------------

{
	my $kills = $ENV{POSTERIOR_KILLS} || 100;
	my $loop = q{
		DO $$
		DECLARE done int := 0; failed int := 0; value float8; kk int;
		BEGIN
			WHILE NOT EXISTS (SELECT FROM stop) LOOP
				kk := 1 + done % 20;
				BEGIN
					SELECT posterior.mean(posterior.predict(ctx, 1, 2)) INTO value
						FROM c WHERE k = kk;
					IF value <> (SELECT r.value FROM truth r WHERE k = kk)
						THEN RAISE 'wrong answer'; END IF;
				EXCEPTION WHEN system_error THEN failed := failed + 1;
				END;
				done := done + 1;
			END LOOP;
			RAISE NOTICE 'done %, failed %', done, failed;
		END $$;
	};
	$node->safe_psql('postgres',
			'CREATE TABLE stop (); CREATE TABLE truth AS
				SELECT k, posterior.mean(posterior.predict(ctx, 1, 2)) AS value FROM c');
	is($node->safe_psql('postgres',
				'SET posterior.device = cpu; SELECT count(*) FROM truth r, c
				WHERE r.k = c.k AND value <> posterior.mean(posterior.predict(ctx, 1, 2))'), '0',
		'the truth is true');
	my $postmaster = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
	my @clients = map { begin('SET posterior.on_device_error = ' . ($_ % 2 ? 'error' : 'cpu'),
		$loop) } 1 .. 6;
	my $killed = 0;
	my $file = $node->data_dir . '/../kills';
	# The pid is taken from the operating system, so that the server's clients are not slowed down.
	my $looker = session($node);
	while ($killed < $kills)
	{
		sleep(rand(0.15));
		my $pid = ask($looker, 'SELECT coalesce(pid, 0) FROM posterior_internal.server_state()');
		$killed += kill('KILL', $pid) if $pid > 0;
	}
	leave($looker);
	$node->safe_psql('postgres', 'INSERT INTO stop DEFAULT VALUES');
	my ($done, $failed, $lost) = (0, 0, 0);
	for my $i (0 .. $#clients)
	{
		my ($o, $e) = finish($clients[$i]);
		if ($o =~ /goes on/ && $e =~ /NOTICE:.*done (\d+), failed (\d+)/) { $done += $1;
			$failed += $2; }
		else { $lost++; diag("$o $e"); }
	}
	note("$killed kills, $done predictions, $failed failed");
	is($lost, 0, 'no session was lost, no answer was wrong');
	cmp_ok($failed, '>', 0, 'some statements failed, with 58000');
	is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $postmaster,
			'PostgreSQL did not notice');
	is($node->safe_psql('postgres', $short), $right, 'and it works');
}

# ---- a backend is killed: PostgreSQL starts over, and the server with it -------------------------

{
	my $pid = pid_of_server();
	my $victim = begin($longer);
	wait_until("SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE '%2000)%'
			AND wait_event_type = 'Extension'", 't', 'a request is in flight');
	my $logged = -s $node->logfile;
	kill 'KILL', $node->safe_psql('postgres',
			"SELECT pid FROM pg_stat_activity WHERE query LIKE '%2000)%'
			AND pid <> pg_backend_pid()");
	finish($victim);
	wait_for_restart($node, $logged);
	ok($node->poll_query_until('postgres',
				"SELECT state = 'ready' AND pid <> $pid
				FROM posterior_internal.server_state()", 't'),
			'another server after a crash');
	is($node->safe_psql('postgres', $short), $right, 'which answers');
	is(server('encodings'), '1', 'and holds what was asked since');
	ok(has_ended($pid), 'the old one has ended');
}

my $last = pid_of_server();
# Supervisors of this node: pg_stat_activity shows no process that has no database.
sub supervisors
{
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	return scalar grep { /^\s*$postmaster\s.*posterior supervisor/ } `ps -A -o ppid=,args=`;
}
is(supervisors(), 1, 'a supervisor has started it');

# ---- without a server, and at the end ------------------------------------------------------------

$node->stop('immediate');
ok(has_ended($last), 'it ends with PostgreSQL, however that ends');
$node->append_conf('postgresql.conf', "posterior.device = auto\nposterior.server_device = cuda\n");
$node->start;
if (-e '/dev/nvidiactl')
{
	ok(1, 'a machine with a GPU');
}
else
{
	is(supervisors(), 0, 'without a GPU nothing is started');
}
is($node->safe_psql('postgres', $short), $right, 'and the session answers');
is($node->safe_psql('postgres', "SELECT state FROM posterior.stat_server"), 'off',
		'as the view says') unless -e '/dev/nvidiactl';
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->restart;
is($node->safe_psql('postgres', $short), $right, 'without preloading, too');
($status, $out, $err) = run("SET posterior.device = cuda; $short; SELECT 'goes on';");
like($err, qr/55000: no device can be used.*shared_preload_libraries/s,
	'cuda says that preloading is needed');
is($node->safe_psql('postgres',
	"SET posterior.device = cuda; SET posterior.on_device_error = cpu; $short"), $right,
	'or falls back');
$node->stop;
done_testing();
