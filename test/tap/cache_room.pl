# A cache full of small encodings makes room for the next one, for a large one and for another
# model, instead of leaving the work to each session.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('room');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'pg_posterior'\nposterior.cache_size = '16MB'\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE FUNCTION ask(of_model text, contexts int, size int) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM set_config('posterior.model', of_model, true);
		FOR c IN 1..contexts LOOP
			PERFORM posterior.predict(ctx, 0.5)
				FROM (SELECT posterior.context(i + c, i / 10.0) AS ctx
					FROM generate_series(1, size) i) s;
		END LOOP;
	END $$;
});

# What predictions add to the counters.
sub counted
{
	my ($model, $contexts, $size) = @_;
	my @before = split /\|/,
		$node->safe_psql('postgres',
			'SELECT hits, misses, evictions, private FROM posterior.stat_cache()');
	$node->safe_psql('postgres', "SELECT ask('$model', $contexts, $size)");
	my @after = split /\|/,
		$node->safe_psql('postgres',
			'SELECT hits, misses, evictions, private FROM posterior.stat_cache()');
	return map { $after[$_] - $before[$_] } 0 .. 3;
}

my ($hits, $misses, $evictions, $private) = counted('toy', 1500, 6);
is("$hits $misses $private", '0 1500 0', 'each of many small contexts finds room');
cmp_ok($evictions, '>', 0, 'because older ones go');
($hits, $misses, $evictions, $private) = counted('toy', 1, 6);
is("$misses $private", '1 0', 'the first one has gone');
($hits, $misses, $evictions, $private) = counted('toy', 1, 6);
is("$hits $misses $private", '1 0 0', 'and is kept again');
for my $case (['toy', 1500], ['tabular_small', 100], ['tabular_small', 300])
{
	my ($model, $size) = @$case;
	counted('toy', 1500, 6);
	($hits, $misses, $evictions, $private) = counted($model, 1, $size);
	is("$misses $private", '1 0', "$model and $size rows find room among small ones");
	($hits, $misses, $evictions, $private) = counted($model, 1, $size);
	is("$hits $misses $private", '1 0 0', "$model and $size rows are kept");
}
# What was kept in between leaves no fences: entries and models of several sizes come and go, and an
# encoding of a fifth of the cache is kept after them.
$node->restart;
for my $turn (1 .. 30)
{
	counted('toy', 20, 6 * $turn);
	counted('tabular_small', 3, 10 * $turn);
	counted('gp1d', 3, 8 * $turn);
}
for my $size (500, 700, 900)
{
	counted('tabular_small', 1, $size);
	($hits, $misses, $evictions, $private) = counted('tabular_small', 1, $size);
	is("$misses $private", '0 0', "$size rows are kept after much has come and gone");
}

# warm_context says that an encoding finds no room, whatever its size.
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT i, sin(i) AS y, i / 10.0 AS x FROM generate_series(1, 2600) i;
	SELECT posterior.create_context('large', 't', 'y', '{x}', 'i', 'tabular_small')});
my ($code, $out, $told) =
  $node->psql('postgres', "SELECT posterior.warm_context('large')");
like($told,
	qr/NOTICE:  the encoding of context "large" (?:finds no room in|is larger than) the cache/,
	'an encoding that is not kept is told of');
$node->stop;
done_testing();
