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
	max_parallel_workers_per_gather = 0
});
$node->start;
my $few = 4000;
my $many = 4 * $few;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE many (id int PRIMARY KEY, at timestamptz, site int, x float8, note text, y float8);
	INSERT INTO many SELECT i, '2020-01-01'::timestamptz + make_interval(hours => i / 4), i % 4,
		i % 29, repeat(md5(i::text), 8), i % 29 + (hashint4(i) & 255) / 255.0
		FROM generate_series(0, $many - 1) i;
	CREATE TABLE few AS SELECT * FROM many WHERE id < $few;
	ALTER TABLE few ADD PRIMARY KEY (id);
	CREATE VIEW few_series AS SELECT at, x, y FROM few WHERE site = 0;
	CREATE VIEW many_series AS SELECT at, x, y FROM many WHERE site = 0;
	CREATE VIEW few_first AS SELECT * FROM few WHERE id < $few / 2;
	CREATE VIEW many_first AS SELECT * FROM many WHERE id < $many / 2;
	CREATE VIEW few_holes AS SELECT id, x, note, CASE WHEN id % 3 > 0 THEN y END AS y FROM few;
	CREATE VIEW many_holes AS SELECT id, x, note, CASE WHEN id % 3 > 0 THEN y END AS y FROM many;
	CREATE TABLE known AS SELECT * FROM few WHERE id < 64;
	CREATE TABLE new_few AS SELECT * FROM known LIMIT 0;
	CREATE TABLE new_many AS SELECT * FROM known LIMIT 0;
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
	ask($s, $statement =~ s/\b(few|many)(?=\W|_)/few/gr =~ s/id < \d+/id < 200/r);
	open(my $refs, '>', "/proc/$pid/clear_refs") or die $!;
	print $refs '5';
	close($refs);
	my $answer = ask($s, $statement);
	like($answer, qr/^\d+$/, "rows of $statement");
	my $status = slurp_file("/proc/$pid/status");
	my ($highest) = $status =~ /VmHWM:\s+(\d+)/;
	my ($shared) = $status =~ /RssShmem:\s+(\d+)/;
	leave($s);
	return $highest - $shared;
}

my %verbs = (
	forecast => "posterior.forecast('few_series', 'at', 'y', 3, history => 400)",
	forecast_total => "posterior.forecast_total('few_series', 'at', 'y', 3, history => 400,
		draws => 20)",
	backtest => "posterior.backtest('few_series', 'at', 'y', 3, history => 400, origins => 2)",
	evaluate => "posterior.evaluate('few', 'y', '{x}', max_rows => 32, folds => 2)",
	detect_anomalies => "posterior.detect_anomalies('few', 'y', '{x}', max_rows => 32, folds => 2,
		all_rows => true)",
	'detect_anomalies in time' => "posterior.detect_anomalies('few_first', 'y', '{x}',
		\"time\" => 'at', by => '{site}', history => 8, all_rows => true)",
	impute => "posterior.impute('few_holes', '{y}', '{x}', key => '{id}', max_rows => 32)",
	importance => "posterior.importance('few', 'y', '{x,site}', max_rows => 32)",
	score => "posterior.score('known', 'few', key => '{id}', block => 500)",
);
for my $verb (sort keys %verbs)
{
	my $few_statement = "SELECT count(*) FROM $verbs{$verb} v";
	my $few_peak = peak($few_statement);
	my $many_peak = peak($few_statement =~ s/'few/'many/r);
	# a row of a result is a kilobyte and more
	my $margin = ($few_statement =~ /few_first/ ? 3 : 6) * 1024;
	cmp_ok($many_peak, '<', $few_peak + $margin, "$verb: $few_peak kB, then $many_peak kB");
}
# the measure finds what holds every row
my $holds = 'SELECT cardinality(array_agg(repeat(note, 4))) FROM few';
my $few_held = peak($holds);
my $many_held = peak($holds =~ s/few/many/r);
cmp_ok($many_held, '>', $few_held + 6 * 1024, "held: $few_held kB, then $many_held kB");
my %inserted = map { $_ => peak("WITH i AS (INSERT INTO new_$_ SELECT * FROM many
	WHERE id < " . ($_ eq 'few' ? 300 : 1200) . ' RETURNING 1) SELECT count(*) FROM i') }
	('few', 'many');
cmp_ok($inserted{many}, '<', $inserted{few} + 6 * 1024,
	"watch: $inserted{few} kB, then $inserted{many} kB");
$node->stop;
done_testing();
