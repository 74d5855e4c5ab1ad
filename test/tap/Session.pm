# Sessions that stay while a program does other things.
#
# SPDX-License-Identifier: PostgreSQL
package Session;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run;
our @EXPORT = ('session', 'ask', 'leave');

my $asked = 0;

# A session with a database of a node, postgres unless another is named.
sub session
{
	my ($node, $database) = @_;
	my $s = { in => '', out => '' };
	$s->{run} = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr($database // 'postgres') ], '<', \$s->{in}, '>&', \$s->{out}, IPC::Run::timeout(300));
	return $s;
}

# What a statement says in it, errors among the rest.
sub ask
{
	my ($s, $statement) = @_;
	my $end = 'end ' . ++$asked;
	$s->{out} = '';
	$s->{in} .= "$statement;\n\\echo $end\n";
	$s->{run}->pump until $s->{out} =~ /^$end$/m;
	return $s->{out} =~ s/\n?$end\n$//r;
}

# Its end.
sub leave
{
	my ($s) = @_;
	$s->{in} .= "\\q\n";
	$s->{run}->finish;
	return;
}

1;
