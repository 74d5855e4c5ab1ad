# Memory of the verbs is bounded: four times as many rows of a relation take no more of it, beyond
# what a sort or a result may take before it goes to disk. Measured is the peak of a backend's own
# pages, which the kernel keeps and sets back.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Session;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'no /proc to measure with' unless -w '/proc/self/clear_refs';

my $node = PostgreSQL::Test::Cluster->new('verb_memory');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_buffers = 1MB
	work_mem = 256kB
	posterior.cache_size = 1MB
	posterior.threads = 1
	posterior.model = 'tabular_small'
	max_parallel_workers_per_gather = 0
});
# malloc gives large blocks back at once; else that depends on what was allocated before
$ENV{MALLOC_MMAP_THRESHOLD_} = 131072;
$node->start;
my %rows = (tiny => 400, few => 2000, many => 8000);
$node->safe_psql('postgres', 'CREATE EXTENSION pg_posterior');
$node->safe_psql('postgres', qq{
	CREATE TABLE $_ (id int PRIMARY KEY, at timestamptz, site int, x float8, note text, y float8);
	INSERT INTO $_ SELECT i, '2020-01-01'::timestamptz + make_interval(hours => i / 4), i % 4,
		i % 29, repeat(md5(i::text), 24), i % 29 + (hashint4(i) & 255) / 255.0
		FROM generate_series(0, $rows{$_} - 1) i;
	CREATE VIEW ${_}_series AS SELECT at, x, y FROM $_ WHERE site = 0;
	CREATE VIEW ${_}_first AS SELECT * FROM $_ WHERE id < $rows{$_} / 4;
	CREATE VIEW ${_}_holes AS SELECT id, x, note, CASE WHEN id % 3 = 0 THEN y END AS y FROM $_})
		for sort keys %rows;
$node->safe_psql('postgres', q{
	CREATE TABLE known AS SELECT * FROM few WHERE id < 64;
	CREATE TABLE new_few AS SELECT * FROM known;
	CREATE TABLE new_many AS SELECT * FROM known;
	SELECT posterior.create_context('known', 'known', 'y', '{x}', order_by => 'id');
	SELECT posterior.create_context(n, ('new_' || n)::regclass, 'y', '{x}', order_by => 'id',
		max_rows => 32) FROM unnest('{few,many}'::text[]) n;
	SELECT posterior.watch(n, into_table => 'log_' || n) FROM unnest('{few,many}'::text[]) n;
	ANALYZE});

# Highest number of kilobytes of its own that a fresh backend reaches with a statement.
sub peak
{
	my ($statement) = @_;
	my $s = session($node);
	my $pid = ask($s, 'SELECT pg_backend_pid()');
	# what does not depend on the number of rows: caches of the catalogue, the model, functions
	ask($s, $statement =~ s/\b(few|many)(?=\W|_)/tiny/gr =~ s/id < \d+/id < 50/r);
	open(my $refs, '>', "/proc/$pid/clear_refs") or die $!;
	print $refs '5';
	close($refs);
	my $answer = ask($s, $statement);
	like($answer, qr/^\d+$/, "rows of $statement");
	my $status = slurp_file("/proc/$pid/status");
	my ($highest) = $status =~ /VmHWM:\s+(\d+)/;
	leave($s);
	# pages of files and of shared memory come and go with what else the machine does
	$highest -= $_ for $status =~ /Rss(?:File|Shmem):\s+(\d+)/g;
	return $highest;
}

my %verbs = (
	forecast => "posterior.forecast('few_series', 'at', 'y', 3, history => 100)",
	forecast_total => "posterior.forecast_total('few_series', 'at', 'y', 3, history => 100,
		draws => 20)",
	backtest => "posterior.backtest('few_series', 'at', 'y', 3, history => 100, origins => 2)",
	evaluate => "posterior.evaluate('few', 'y', '{x}', max_rows => 32, folds => 2)",
	detect_anomalies => "posterior.detect_anomalies('few', 'y', '{x}', max_rows => 32, folds => 2,
		key => '{id,note}', all_rows => true)",
	'detect_anomalies in time' => "posterior.detect_anomalies('few_first', 'y', '{x}',
		\"time\" => 'at', by => '{site}', history => 8, key => '{id,note}',
		all_rows => true)",
	impute => "posterior.impute('few_holes', '{y}', '{x}', key => '{id,note}', max_rows => 32)",
	importance => "posterior.importance('few', 'y', '{x,site}', max_rows => 32)",
	score => "posterior.score('known', 'few', key => '{id,note}', block => 500)",
);
for my $verb (sort keys %verbs)
{
	my $few_statement = "SELECT count(*) FROM $verbs{$verb} v";
	my $few_peak = peak($few_statement);
	my $many_peak = peak($few_statement =~ s/'few/'many/r);
	# a row of a result is a kilobyte and more
	my $margin = ($few_statement =~ /few_first/ ? 1 : 3) * 1024;
	cmp_ok($many_peak, '<', $few_peak + $margin, "$verb: $few_peak kB, then $many_peak kB");
}
# the measure finds what holds every row
my $holds = 'SELECT cardinality(array_agg(repeat(note, 4))) FROM few';
my $few_held = peak($holds);
my $many_held = peak($holds =~ s/few/many/r);
cmp_ok($many_held, '>', $few_held + 3 * 1024, "held: $few_held kB, then $many_held kB");
my %inserted = map { $_ => peak("WITH i AS (INSERT INTO new_$_ SELECT * FROM many
	WHERE id < " . ($_ eq 'few' ? 100 : 400) . ' RETURNING 1) SELECT count(*) FROM i') }
	('few', 'many');
cmp_ok($inserted{many}, '<', $inserted{few} + 1024,
	"watch: $inserted{few} kB, then $inserted{many} kB");
$node->stop;
done_testing();
