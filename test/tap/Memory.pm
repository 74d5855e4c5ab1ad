# Memory.pm: whether memory stops rising, where how much of it is held is not a test's to say.
#
# SPDX-License-Identifier: PostgreSQL
package Memory;

use strict;
use warnings;
use Exporter 'import';
our @EXPORT = qw(calm);

# How many of these sizes, measured one after another, do not exceed all before them. Where every
# wave leaves memory behind, none; where what is held only varies, all but a few.
sub calm
{
	my ($calm, $highest) = (0, 0);
	for my $size (@_)
	{
		$calm++ if $size <= $highest;
		$highest = $size if $size > $highest;
	}
	return $calm;
}

1;
