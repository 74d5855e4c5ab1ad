# A pause of the machine, or of the supervisor alone, that is longer than posterior.device_timeout:
# the server for devices had no chance to give a sign of life, or the supervisor none to read it, so
# the server is not killed.
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
use Time::HiRes qw(sleep);

my $node = device_server('paused', "posterior.maintenance_delay = -1\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_posterior');
my $server = pid_of_server();
chomp(my $supervisor = `ps -o ppid= -p $server`);
my $state = 'FROM posterior_internal.server_state()';
my $memory = 1000;

# Set the longest silence. With another limit of memory the supervisor starts another server as soon
# as it knows both settings.
sub allow
{
	my ($timeout) = @_;
	$memory++;
	$node->safe_psql('postgres', "ALTER SYSTEM SET posterior.device_timeout = '$timeout'");
	$node->safe_psql('postgres', "ALTER SYSTEM SET posterior.device_memory = $memory");
	$node->reload;
	# a session that begins with the settings does after they were announced to all processes
	$node->poll_query_until('postgres',
			"SELECT setting = '$memory' FROM pg_settings WHERE name = 'posterior.device_memory'")
		or die 'no settings';
	return;
}

sub starts
{
	return $node->safe_psql('postgres', "SELECT starts $state");
}

sub another_since
{
	my ($starts) = @_;
	$node->poll_query_until('postgres', "SELECT starts > $starts AND state = 'ready' $state")
		or die 'no other server';
	return;
}

# Stop the supervisor, and its server if told to, for longer than the server may be silent; whether
# the supervisor kills it then. It judges once before it looks at the settings, which then allow an
# hour and want another server: so it is known when it has judged.
sub killed_by_pause
{
	my ($server_too) = @_;
	my $starts = starts();
	allow('1s');
	another_since($starts);
	kill('STOP', $supervisor) == 1 or die 'no supervisor';
	$starts = starts();
	my $pid = $node->safe_psql('postgres', "SELECT coalesce(pid, 0) $state");
	my $log = -s $node->logfile;
	kill('STOP', $pid) if $server_too && $pid > 0;
	sleep(2.5);
	# what answers twice has given a sign of life in between
	server('requests') for $server_too ? () : 1 .. 2;
	allow('1h');
	kill('CONT', $supervisor);
	kill('CONT', $pid) if $server_too && $pid > 0;
	another_since($starts);
	return substr(slurp_file($node->logfile), $log) =~ /killed because it hangs/;
}

ok(!killed_by_pause(0), 'signs of life that came while the supervisor stood still are read')
	for 1 .. 3;
# A busy machine may have kept the server silent for nearly a second already: then another pause
# tells.
my $killed = 1;
for (my $tries = 0; $killed && $tries < 10; $tries++)
{
	$killed = killed_by_pause(1);
}
ok(!$killed, 'a pause of both is not the silence of the server');
$node->stop;
done_testing();
