# A full cache keeps working: the least recently used entries are evicted, also where free memory is
# fragmented.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $models = $ENV{TEST_MODELS};
my $node = PostgreSQL::Test::Cluster->new('full');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'pg_posterior'\nposterior.cache_size = '8MB'\n");
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	SELECT posterior.load_model('other', '$models/packed_causal.safetensors');
	SELECT posterior.load_model('scaled', '$models/prefix_causal_scaled.safetensors');
	ALTER DATABASE postgres SET posterior.model = 'scaled';
	CREATE TABLE t (k int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, x float8,
			z int NOT NULL DEFAULT 1, y float8);
	INSERT INTO t (x, y) SELECT i / 10.0, sin(i) FROM generate_series(1, 30) i;
});
sub cache { return $node->safe_psql('postgres', "SELECT $_[0] FROM posterior.stat_cache()") }
# Contexts of many lengths that differ from their first row on.
sub fill
{
	my ($n) = @_;
	$node->safe_psql('postgres', qq{
		DO \$\$ BEGIN
			FOR i IN 1 .. $n LOOP
				PERFORM posterior.predict(c, 0.5::float8, 2)
					FROM (SELECT posterior.context(g + random(), g::float8, 1 ORDER BY g) AS c
					FROM generate_series(1, 5 + i * 7 % 60) g) s;
			END LOOP;
		END \$\$});
}

fill(2000);
cmp_ok(cache('evictions'), '>', 1000, 'contexts have given way');
is(cache('private'), 0, 'to all others');
cmp_ok(cache('bytes'), '>', 4 * 1024 * 1024, 'and the cache is used');

# What is used again and again has second chances, and so has what is in use.
my ($before, $gone) = split /\|/, cache('hits, evictions');
my $asked = 200;
$node->safe_psql('postgres', qq{
	CREATE FUNCTION hot(d float8) RETURNS posterior.distribution LANGUAGE sql AS \$\$
		SELECT posterior.predict(c, 0.5::float8, 2)
		FROM (SELECT posterior.context(g + d, g::float8, 1 ORDER BY g) AS c
			FROM generate_series(1, 20) g) s \$\$;
	SELECT hot(1);
	BEGIN;
	DECLARE held CURSOR FOR SELECT posterior.predict(c, i / 7.0::float8, 2)
		FROM (SELECT posterior.context(g + 2::float8, g::float8, 1 ORDER BY g) AS c
			FROM generate_series(1, 20) g) s, generate_series(1, 1000) i;
	FETCH 1 FROM held;
	DO \$\$ BEGIN
		FOR i IN 1 .. $asked * 10 LOOP
			PERFORM posterior.predict(c, 0.5::float8, 2)
				FROM (SELECT posterior.context(g + random(), g::float8, 1 ORDER BY g) AS c
				FROM generate_series(1, 5 + i * 7 % 60) g) s;
			IF i % 10 = 0 THEN PERFORM hot(1); END IF;
		END LOOP;
	END \$\$;
	SELECT hot(2);
	COMMIT});
my ($after, $more) = split /\|/, cache('hits, evictions');
cmp_ok($more - $gone, '>', 1000, 'others have given way');
is($after - $before, $asked + 1, 'but not what was used in between, or was in use');

# A named context, and another model.
$node->safe_psql('postgres',
		"SELECT posterior.create_context('c', 't', 'y', features => '{x,z}', order_by => 'k',
			model => 'other')");
my $predict = "SELECT posterior.predict('c', q) FROM (SELECT 0.5::float8 AS x, 2 AS z) q";
my $answer = $node->safe_psql('postgres', $predict);
is($node->safe_psql('postgres', $predict), $answer, 'the same again');
is($node->safe_psql('postgres', "SELECT skips, private FROM posterior.stat_contexts
			WHERE name = 'c'"), '1|0', 'without reading the table');
is($node->safe_psql('postgres', "SET posterior.cache = off; $predict"), $answer, 'and right');

# A context as large as half of the cache.
is($node->safe_psql('postgres', "INSERT INTO t (x, y) SELECT 1, 1 FROM generate_series(1, 3000);
			SELECT posterior.warm_context('c')"), '3030', 'a large context');
is(cache('private'), 0, 'is shared as well');
fill(200);
is(cache('private'), 0, 'and so are small ones after it');
$node->stop;
done_testing();
