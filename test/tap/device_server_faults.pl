# Server processes for devices that are not what they should be: another version, answers that do
# not fit, connections that end, a program that cannot be started. Each gives one error, or the
# answer of the session where posterior.on_device_error says so.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use DeviceServer;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = device_server('faults', "posterior.maintenance_delay = -1\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE c AS SELECT 1 AS k,
		posterior.context(sin(i * 0.1), i * 0.1, cos(i * 0.3)) AS ctx
	FROM generate_series(1, 200) i;
});
my $short = 'SELECT posterior.mean(posterior.predict(ctx, 1, 2)) FROM c WHERE k = 1';
my $right = $node->safe_psql('postgres', "SET posterior.device = cpu; $short");
my ($status, $out, $err);
pid_of_server();

my $rogue = $node->data_dir . '/../rogue';
open(my $program, '>', $rogue) or die;
print $program q{#!/usr/bin/perl
use strict; use warnings; use IO::Socket::UNIX; use IO::Select;
my %option; while (@ARGV) { my $name = shift @ARGV;
	$option{$name} = $name eq '--supervised' ? 1 : shift @ARGV; }
open(my $f, '<', "$0.mode") or die; my $mode = <$f>; chomp $mode;
unlink $option{'--socket'}; umask 0177;
my $listener = IO::Socket::UNIX->new(Local => $option{'--socket'}, Listen => 50) or die;
STDERR->autoflush(1); print STDERR "R rogue\n";
sub fnv
{
	my $h = 2166136261;
	for (unpack 'C*', $_[0]) { $h = (($h ^ $_) * 16777619) & 0xffffffff } return $h;
}
sub header
{
	my ($kind, $id, $length, $version) = @_;
	my $h = pack('L S S Q Q L', 0x53504e54, $version || 3, $kind, $id, $length, 0);
	return $h . pack('L', fnv($h));
}
$SIG{ALRM} = sub { print STDERR "\n"; alarm 1 }; alarm 1; $SIG{PIPE} = 'IGNORE';
my $select = IO::Select->new($listener, \*STDIN);
while (1) {
	for my $s ($select->can_read(1)) {
		if ($s == $listener) { $select->add(scalar $listener->accept); next }
		if (fileno($s) == 0) { exit 0 }
		my $n = sysread($s, my $bytes, 1 << 20);
		if (!$n) { $select->remove($s); close $s; next }
		my ($magic, $version, $kind, $id, $length) = unpack('L S S Q Q', $bytes);
		my $queries = $kind == 3 ? unpack('x112 q', $bytes) : 0;
		if ($mode eq 'version') { syswrite($s, header(64, $id, 0, 9)); next }
		if ($mode eq 'garbage') { syswrite($s, 'x' x 4096); next }
		if ($mode eq 'silent close') { $select->remove($s); close $s; next }
		if ($kind == 1) {
			my $welcome = pack('a16 a128 a64 L L Q Q Q', 'rogue', 'rogue', '', 1, 1, 0, 1, $$);
			if ($mode eq 'short welcome') { syswrite($s, header(64, $id, 8) . ('x' x 8)); next }
			syswrite($s, header(64, $id, length $welcome) . $welcome); next;
		}
		if ($kind == 2) { syswrite($s, header(65, $id, 0)); next }
		if ($mode eq 'other id') { syswrite($s, header(66, $id + 7, 0)) }
		elsif ($mode eq 'wrong size') { syswrite($s, header(66, $id, 24) . ("\0" x 24)) }
		elsif ($mode eq 'nonsense') { syswrite($s, header(66, $id, $queries ? 384 : 0)
			. ($queries ? pack('d', -1) x 48 : '')) }
		elsif ($mode eq 'negative') { syswrite($s, header(66, $id, $queries ? 16 : 0)
			. ($queries ? pack('d d', 0, -1) : '')) }
		elsif ($mode eq 'huge') { syswrite($s, header(66, $id, 1 << 39)) }
		elsif ($mode eq 'half') { syswrite($s, header(66, $id, 480) . ("\0" x 100));
			$select->remove($s); close $s }
		elsif ($mode eq 'kind') { syswrite($s, header(77, $id, 0)) }
		elsif ($mode eq 'bad failure') { syswrite($s, header(69, $id, 520) . ("\0" x 520)) }
		elsif ($mode eq 'refusal') { syswrite($s, header(69, $id, 520)
			. pack('L L a256 a256', 3, 0, 'the CUDA device refuses to compute this', '')) }
		elsif ($mode eq 'missing') { syswrite($s, header(67, $id, 16) . pack('Q q', 0, 0)) }
		elsif ($mode eq 'too much') { syswrite($s, header(67, $id, 16) . pack('Q q', 0, 1 << 40)) }
		elsif ($mode eq 'sum') { my $h = header(66, $id, 0); substr($h, 31, 1) = "\xff";
			syswrite($s, $h) }
	}
}
};
close $program;
chmod 0755, $rogue;
sub rogue_mode
{
	my ($mode) = @_;
	open(my $f, '>', "$rogue.mode") or die;
	print $f "$mode\n";
	close $f;
}

# Wait for the server after so many, whatever its faults are.
sub started_since
{
	my ($starts, $what) = @_;
	return wait_until("SELECT state = 'ready' AND starts > $starts
		FROM posterior_internal.server_state()", 't', $what);
}

rogue_mode('garbage');
my $genuine = server('starts');
$node->append_conf('postgresql.conf', "posterior.server_program = '$rogue'\n");
$node->reload;
started_since($genuine, 'another program');
for my $case (
	[ 'garbage', qr/58000: the reply of the posterior server is corrupt/ ],
	[ 'version',
		qr/58000: the posterior server is of another version.*rotocol version 9 was received/s ],
	[ 'silent close', qr/58000: the posterior server is not running/ ],
	[ 'short welcome', qr/58000: the reply of the posterior server is corrupt/ ],
	[ 'other id', qr/58000: the reply of the posterior server is corrupt.*answers request/s ],
	[ 'wrong size',
		qr/58000: the reply of the posterior server is corrupt.*n answer of 24 bytes/s ],
	[ 'nonsense',
		qr/58000: the reply of the posterior server is corrupt.*no answer to what was asked/s ],
	[ 'negative',
		qr/58000: the reply of the posterior server is corrupt.*no answer to what was asked/s,
		'SELECT mean FROM c, posterior.predict_summary(ctx, ARRAY[ROW(1, 2)]) WHERE k = 1' ],
	[ 'huge', qr/58000: the reply of the posterior server is corrupt/ ],
	[ 'half', qr/58000: the (connection to|reply of) the posterior server (was lost|is corrupt)/ ],
	[ 'kind', qr/58000: the reply of the posterior server is corrupt.*of kind 77/s ],
	[ 'bad failure', qr/58000: the reply of the posterior server is corrupt/ ],
	[ 'refusal', qr/58000: the device cannot compute this request.*CUDA device refuses/s ],
	[ 'missing', qr/53200: out of device memory/ ],
	[ 'too much', qr/58000: the reply of the posterior server is corrupt/ ],
	[ 'sum', qr/58000: the reply of the posterior server is corrupt.*sum of its header/s ])
{
	my ($mode, $expected, $question) = (@$case, $short);
	rogue_mode($mode);
	my $starts = server('starts');
	my $pid = server('coalesce(pid, 0)');
	die 'no server' unless $pid > 0;
	kill 'KILL', $pid;
	started_since($starts, "a server with the fault: $mode");
	($status, $out, $err) = run(
			"$question; SELECT 'goes on'; SET posterior.on_device_error = cpu; $short;");
	like($err, $expected, "$mode: the right error");
	is(scalar(my @errors = $err =~ /ERROR/g), 1, "$mode: one error");
	like($out, qr/goes on\n\Q$right\E/, "$mode: the session goes on, and falls back when told to");
}

# No server program: PostgreSQL works, "auto" answers, "cuda" says why it cannot.
$node->append_conf('postgresql.conf', "posterior.server_program = '/nonexistent/server'\n");
$node->reload;
wait_until("SELECT state FROM posterior.stat_server", 'waiting', 'a server that cannot be started');
($status, $out, $err) = run("$short; SELECT 'goes on';");
like($err, qr/58000: the posterior server is not running.*its program cannot be started/s,
	'the error says why');
is($node->safe_psql('postgres', "SET posterior.device = auto; $short"), $right,
	'auto answers on the CPU');
is($node->safe_psql('postgres', "SET posterior.on_device_error = cpu; $short"), $right,
	'so does cuda when told to');
($status, $out, $err) = run(q{
	CREATE TABLE watched AS SELECT i AS k, i * 0.1 AS x, sin(i) AS y FROM generate_series(1, 40) i;
	SELECT posterior.create_context('watched', 'watched', 'y', '{x}', 'k'),
		posterior.watch('watched');
	INSERT INTO watched VALUES (41, 1, 1) RETURNING surprise IS NULL;});
is($out, "|\nt", 'a watch lets rows in');
like($err, qr/WARNING:.*the posterior server is not running/, 'and says why they are told nothing');
like(slurp_file($node->logfile), qr/posterior server has ended: its program cannot be started/,
	'the log says so');

# A device that takes longer to open than the supervisor waits for signs of life: without these
# every process would be killed before it says what comes of it.
my $slow = $node->data_dir . '/../slow';
open(my $wrapper, '>', $slow) or die;
my $pkglib = `pg_config --pkglibdir`;
chomp $pkglib;
print $wrapper "#!/bin/sh\nexec '$pkglib/pg_posterior_server' \"\$@\" --device cuda "
	. "--library '$ENV{TEST_LIBRARIES}/slow_device.so'\n";
close $wrapper;
chmod 0755, $slow;
$node->append_conf('postgresql.conf',
	"posterior.server_program = '$slow'\nposterior.device_timeout = 2\n");
$node->reload;
ok($node->poll_query_until('postgres', q{
	SELECT last_end LIKE '%it is too slow%' FROM posterior.stat_server}, 't'),
	'a device that opens slowly is waited for');
like(slurp_file($node->logfile), qr/posterior server: the slow device has been translated/,
	'to the end of its opening');
$node->append_conf('postgresql.conf', "posterior.device_timeout = 30\n");

# Have a shell script pretend to be the server that is ready; until it has ended as it should.
sub ends_as
{
	my ($name, $script, $end) = @_;
	my $program = $node->data_dir . "/../$name";
	open(my $file, '>', $program) or die;
	print $file "#!/bin/sh\necho 'R pretended' >&2\n$script\n";
	close $file;
	chmod 0755, $program;
	$node->append_conf('postgresql.conf', "posterior.server_program = '$program'\n");
	$node->reload;
	return $node->poll_query_until('postgres',
		"SELECT last_end = '$end' FROM posterior.stat_server", 't');
}

# A server that is ready each time and then fails is started after ever longer times, too.
ok(ends_as('short_lived', "echo 'W it has failed as pretended' >&2\nexit 2",
		'it has failed as pretended'),
	'a server that ends soon says why');
my $looks = 0;
sleep 1 until slurp_file($node->logfile) =~ /started again in 800 ms/ || ++$looks > 180;
like(slurp_file($node->logfile), qr/ 100 ms.* 200 ms.* 400 ms.* 800 ms/s,
	'and has more time each time');

# What was wrong earlier, and what it has survived, is not why it ends.
ok(ends_as('survivor', "echo 'W a client is refused' >&2\necho >&2\nexit 3",
		'it exited with status 3'),
	'a server that has gone on after a warning ends for another reason');

# The real program again.
$node->append_conf('postgresql.conf', "posterior.server_program = ''\n");
$node->reload;
pid_of_server();
is($node->safe_psql('postgres', $short), $right, 'it works again');
$node->stop;
done_testing();
