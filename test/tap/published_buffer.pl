# Published weights of a model with a buffer answer as published (docs/papers.md, "Published
# weights"). NANOACE_MODEL is the file that the trainer's converter makes of them:
#
#   cd train && python3 -m pg_posterior_train.nanoace FOLDER /tmp/nanoace.safetensors
#
# published_buffer.json has what to expect; test/reference/golden_published.py wrote it. Published
# are numbers of 32 bits, whose noise grows along a chain to 2e-4.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $model = $ENV{NANOACE_MODEL} // '';
plan skip_all => 'NANOACE_MODEL names no file' unless -r $model;

my $expected = decode_json(slurp_file("$FindBin::RealBin/published_buffer.json"));
my $node = PostgreSQL::Test::Cluster->new('published');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_posterior'");
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	SELECT posterior.load_model('published', '$model');
	ALTER DATABASE postgres SET posterior.model = 'published';
	ALTER DATABASE postgres SET posterior.cache = verify});

# Numbers as an SQL array.
sub array { return "'{" . join(',', @{ $_[0] }) . "}'::float8[]" }

# The context of a case as a value.
sub context
{
	my ($case) = @_;
	return 'SELECT posterior.context(y, x ORDER BY o) AS c FROM unnest('
		. array($case->{y}) . ', ' . array($case->{x}) . ') WITH ORDINALITY r (y, x, o)';
}

# Its rows to be scored.
sub asked
{
	my ($case, $n) = @_;
	return 'unnest((' . array($case->{observed}) . ")[1:$n], ("
		. array($case->{at}) . ")[1:$n]) WITH ORDINALITY q (y, x, o)";
}

sub near
{
	my ($got, $expected, $tolerance, $name) = @_;
	ok(abs($got - $expected) <= $tolerance, $name) or diag("got $got, expected $expected");
}

is($node->safe_psql('postgres', q{SELECT architecture, buffer, appendable, gpu
		FROM posterior.models WHERE name = 'published'}), 'buffered|65|f|f', 'what it is');
for my $case (@{ $expected->{marginals} })
{
	my ($mean, $density) = split /\|/, $node->safe_psql('postgres',
		"SELECT posterior.mean(p), posterior.log_pdf(p, $case->{observed}) FROM ("
		. context($case) . ") c, posterior.predict(c, $case->{at}::float8) p");
	near($mean, $case->{mean}, 1e-5, "the mean at $case->{at}");
	near($density, $case->{log_density}, 1e-5, "the log density at $case->{at}");
}

for my $case (@{ $expected->{chains} })
{
	my $n = @{ $case->{at} };
	my @joint = (0);
	for my $rows (1 .. $n)
	{
		push @joint, $node->safe_psql('postgres',
			'SELECT posterior.log_density(c, y, x ORDER BY o) FROM ('
			. context($case) . ') c, ' . asked($case, $rows));
		my $conditional = $joint[$rows] - $joint[ $rows - 1 ];
		near($conditional, $case->{conditionals}[ $rows - 1 ], 1e-4, "row $rows of $n");
		near($conditional, $case->{published}[ $rows - 1 ], 4e-4, "row $rows as published");
	}
	near($node->safe_psql('postgres', 'SELECT posterior.log_density_averaged(c, '
				. "$case->{orders}, $case->{seed}, y, x ORDER BY o) FROM ("
				. context($case) . ') c, ' . asked($case, $n)),
		$case->{averaged}, 1e-4, "$n rows in $case->{orders} random orders");
}

$node->stop;
done_testing();
