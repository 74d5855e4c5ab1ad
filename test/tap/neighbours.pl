# Nearest rows in a shared cache: what sessions find of each other's blocks, what a write makes anew
# and what it leaves, who may ask, and memory that does not grow with the blocks that are asked.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Memory;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('neighbours');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_posterior'\n"
	. "posterior.maintenance_delay = -1\nposterior.cache_size = '256MB'\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t (id int PRIMARY KEY, a float8, b float8, y float8, who text);
	INSERT INTO t SELECT i, sin(i * 0.77), cos(i * 1.13), sin(i * 0.77) * cos(i * 1.13),
		CASE WHEN i % 2 = 0 THEN 'visitor' ELSE 'postgres' END FROM generate_series(1, 2000) i;
	SELECT posterior.create_context('near', 't', 'y', '{a,b}', 'id', 'tabular_small',
		neighbours => 32);
	CREATE VIEW asked AS SELECT i, sin(i * 0.1) AS a, cos(i * 0.17) AS b
		FROM generate_series(1, 50) i;
	GRANT SELECT ON asked TO PUBLIC;
	CREATE ROLE visitor;
});

# The answers to all questions, in one value, and without the cache.
my $ask = q{SELECT md5(string_agg(p::text, ' ' ORDER BY i)) FROM asked q,
	LATERAL posterior.predict('near'::name, q) p};
my $fresh = "SET posterior.cache = off; $ask";

# What a statement adds to the counters of the cache and of the context.
sub counted
{
	my $counters = q{SELECT c.hits, misses, c.private, skips, deltas, rebuilds, s.reads
		FROM posterior.stat_cache() c, posterior.stat_contexts s WHERE name = 'near'};
	my @before = split /\|/, $node->safe_psql('postgres', $counters);
	$node->safe_psql('postgres', shift);
	my @after = split /\|/, $node->safe_psql('postgres', $counters);
	my %by;
	@by{qw(hits misses private skips deltas rebuilds reads)} =
		map { $after[$_] - $before[$_] } 0 .. 6;
	return %by;
}

my %first = counted($ask);
my $blocks = $first{misses} - 1;
# a block may be asked about by two batches of a statement
my $found = $first{hits} + $blocks;
is($first{rebuilds}, 1, 'rows are read once');
cmp_ok($blocks, '>', 20, 'questions are of many blocks');
cmp_ok($blocks, '<=', 50, 'each is encoded once');
my %again = counted($ask);
is("$again{hits} $again{misses} $again{skips}", "$found 0 1",
	'another session finds all blocks, and reads no row');
is($node->safe_psql('postgres', $ask), $node->safe_psql('postgres', $fresh), 'and the answers');

my %far = counted("INSERT INTO t VALUES (2001, 500, 500, 3); $ask");
is("$far{hits} $far{misses} $far{deltas}", "$found 0 1", 'a row that is far leaves all blocks');
my %close = counted("INSERT INTO t SELECT 2002, a, b, 7 FROM asked WHERE i = 9; $ask");
cmp_ok($close{misses}, '>', 0, 'a row that is near to some questions has theirs encoded');
cmp_ok($close{misses}, '<', 15, 'and no others');
is($node->safe_psql('postgres', $ask), $node->safe_psql('postgres', $fresh), 'rightly');
my %own = counted("BEGIN; INSERT INTO t SELECT 2003, a, b, 70 FROM asked WHERE i = 30; $ask;
	ROLLBACK");
cmp_ok($own{private}, '>', 1, 'blocks with rows of the own transaction are its own');
is($own{misses}, 0, 'and no one else finds them');
my %after = counted($ask);
is("$after{misses} $after{private}", '0 0', 'others find what they had');
my %gone = counted("DELETE FROM t WHERE id >= 2001; $ask");
is("$gone{hits} $gone{misses} $gone{reads}", ($found + 1) . ' 0 1',
	'what is deleted leaves the blocks of before');

# A role that may not read the rows is refused; one that sees some is answered from these alone.
my ($status, $out, $err) = $node->psql('postgres', "SET ROLE visitor; $ask");
like($err, qr/permission denied for table t/, 'rights are those of the table');
$node->safe_psql('postgres', q{GRANT SELECT ON t TO visitor;
	ALTER TABLE t ENABLE ROW LEVEL SECURITY;
	CREATE POLICY own ON t USING (who = current_user)});
my %visited = counted("SET ROLE visitor; SET posterior.row_security = private; $ask");
is("$visited{hits} $visited{misses}", '0 0', 'rows that policies show find and leave nothing');
is($node->safe_psql('postgres', "SET ROLE visitor; SET posterior.row_security = private; $ask"),
	$node->safe_psql('postgres', "CREATE TABLE part AS SELECT * FROM t WHERE who = 'visitor';
		SELECT posterior.create_context('part', 'part', 'y', '{a,b}', 'id', 'tabular_small',
			neighbours => 32) IS NULL; " . $ask =~ s/'near'/'part'/r) =~ s/^f\n//r,
	'they are all that is answered from');
$node->stop;

# Without shared memory and with a cache that has room for no block: memory stops rising, and the
# answers are the same.
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->start;
my $many = q{SELECT count(posterior.mean(p)) FROM t q,
	LATERAL posterior.predict('near'::name, q) p WHERE id % 4 = };
my $script = "SET posterior.cache_size = '64kB';\n";
for my $round (0 .. 11)
{
	$script .= "$many" . $round % 4 . ";\n"
		. "SELECT 'memory ' || sum(total_bytes) FROM pg_backend_memory_contexts;\n";
}
$out = $node->safe_psql('postgres', $script . "$ask;\n");
my @memory = $out =~ /memory (\d+)/g;
cmp_ok(calm(@memory), '>=', 3, 'memory does not grow with the blocks')
	or diag("bytes after each round: @memory");
is((split /\n/, $out)[-1], $node->safe_psql('postgres', $fresh), 'answers are the same');
$node->stop;
done_testing();
