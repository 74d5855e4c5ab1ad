# DeviceServer.pm: a PostgreSQL node with the server process for devices, which computes on the CPU,
# and what tests ask and tell it. The functions are about the node that device_server() has made.
#
# SPDX-License-Identifier: PostgreSQL
package DeviceServer;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);
our @EXPORT = qw(device_server server wait_until pid_of_server has_ended run begin finish);

my $node;

# A node that is not started yet, every answer of which comes from the server process.
sub device_server
{
	my ($name, $settings) = @_;
	$node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	$node->append_conf('postgresql.conf', q{
		shared_preload_libraries = 'pg_posterior'
		posterior.server_device = cpu
		posterior.device = cuda
		posterior.device_threshold = 0
		posterior.model = 'tabular_small'
	} . ($settings // ''));
	return $node;
}

# Columns of posterior.stat_server, which the running server fills: it may take a moment to answer.
sub server
{
	my ($columns) = @_;
	for (1 .. 100)
	{
		my $value = $node->safe_psql('postgres', "SELECT $columns FROM posterior.stat_server");
		return $value if $value ne '';
		sleep(0.1);
	}
	return '';
}

sub wait_until
{
	my ($query, $value, $what) = @_;
	return ok($node->poll_query_until('postgres', $query, $value), $what);
}

sub pid_of_server
{
	wait_until('SELECT state FROM posterior.stat_server', 'ready', 'the server is ready');
	return server('pid');
}

# Whether a process ends. One whose status has not been asked for yet has ended as well.
sub has_ended
{
	my ($pid) = @_;
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if !kill(0, $pid);
		my $state = '';
		if (open(my $f, '<', "/proc/$pid/stat"))
		{
			$state = <$f> // '';
			close($f);
		}
		return 1 if $state =~ /\) [ZX] /;
		sleep(0.1);
	}
	return 0;
}

# Status, output and errors (with SQLSTATE) of statements in one session.
sub run
{
	my ($sql, @options) = @_;
	my ($out, $err) = ('', '');
	my $status = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stdout => \$out,
		stderr => \$err, on_error_stop => 0, @options);
	return ($status, $out, $err);
}

# Start psql with statements; finish() returns its output and errors.
sub begin
{
	my (@sql) = @_;
	my %p = (out => '', err => '');
	my @statements = map { ('-c', $_) } @sql, "SELECT 'goes on'";
	$p{run} = IPC::Run::start([ 'psql', '-XqAt', '-v', 'VERBOSITY=verbose', '-d',
		$node->connstr('postgres'), @statements ], '<', \'', '>', \$p{out}, '2>', \$p{err});
	return \%p;
}

sub finish
{
	my ($p) = @_;
	$p->{run}->finish;
	return ($p->{out}, $p->{err});
}

1;
