# Memory.pm: whether memory stops rising, for tests that cannot know how much of it is in use.
#
# SPDX-License-Identifier: PostgreSQL
package Memory;

use strict;
use warnings;
use Exporter 'import';
our @EXPORT = qw(calm);

# How many of these successive sizes do not exceed all before them. Where every round leaks, none;
# where the amount in use only varies, all but a few.
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
