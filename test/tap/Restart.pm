# Restart.pm: wait until PostgreSQL has restarted after a backend was killed.
#
# SPDX-License-Identifier: PostgreSQL
package Restart;

use strict;
use warnings;
use Exporter 'import';
our @EXPORT = ('wait_for_restart');

# Waits until the server of $node, whose log had $logged bytes before the kill, has ended all its
# processes and accepts connections again; dies after the time limit of PostgreSQL's own tests.
# Until the postmaster has noticed the death, a connection may still succeed and be ended with all
# others, hence the log. The polled connections carry no query: psql could end before it had read
# one, and writing the query would fail with EPIPE.
sub wait_for_restart
{
	my ($node, $logged) = @_;
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $logged);
	$node->poll_query_until('postgres', undef, '') or die 'PostgreSQL did not start over';
	return;
}

1;
