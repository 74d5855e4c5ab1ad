# Session.pm: psql sessions that stay open beside a test.
#
# SPDX-License-Identifier: PostgreSQL
package Session;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run;
our @EXPORT = ('session', 'ask', 'leave');

my $asked = 0;
# Seconds that a statement may take: as many as test/check gives to a program. A session has more.
my $longest = 1800;

# A session in a database of a node, by default postgres.
sub session
{
	my ($node, $database) = @_;
	my $s = { in => '', out => '', timer => IPC::Run::timeout($longest) };
	$s->{run} = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr($database // 'postgres') ],
		'<', \$s->{in}, '>&', \$s->{out}, $s->{timer});
	return $s;
}

# The output of a statement, errors included.
sub ask
{
	my ($s, $statement) = @_;
	my $end = 'end ' . ++$asked;
	$s->{timer}->start;
	$s->{out} = '';
	$s->{in} .= "$statement;\n\\echo $end\n";
	$s->{run}->pump until $s->{out} =~ /^$end$/m;
	return $s->{out} =~ s/\n?$end\n$//r;
}

# End the session.
sub leave
{
	my ($s) = @_;
	$s->{in} .= "\\q\n";
	$s->{run}->finish;
	return;
}

1;
