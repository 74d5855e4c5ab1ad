# Unused.pm: statements about a database in which a worker, or the end of a session, may be.
#
# SPDX-License-Identifier: PostgreSQL
package Unused;

use strict;
use warnings;
use Exporter 'import';
our @EXPORT = ('once_unused');

# Executes a statement that PostgreSQL refuses while a session is in the database. It waits 5 s for
# that to end; on a busy machine it may take longer, and a worker may come meanwhile.
sub once_unused
{
	my ($node, $statement) = @_;
	my $err = '';
	for (1 .. $PostgreSQL::Test::Utils::timeout_default / 5)
	{
		return if $node->psql('postgres', $statement, stderr => \$err) == 0;
		last unless $err =~ /is being accessed by other users/;
	}
	die "$statement: $err";
}

1;
