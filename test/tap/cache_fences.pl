# What is in use divides the cache as little as can be: parsed models that a session holds leave the
# rest in one piece, and where an encoding has no room nevertheless, others keep theirs.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;

my $models = $ENV{TEST_MODELS};
my @names = map { "m$_" } 1 .. 7;
my $node = PostgreSQL::Test::Cluster->new('fences');
$node->init;
$node->append_conf('postgresql.conf', qq{
	shared_preload_libraries = 'pg_posterior'
	posterior.cache_size = '16MB'
	posterior.device = cpu
	posterior.maintenance_delay = -1
	posterior.model = 'tabular_small'
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE FUNCTION ask(of_model text, seed float8, size int) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM set_config('posterior.model', of_model, true);
		PERFORM posterior.predict(c, 0.5::float8, 0.5::float8)
			FROM (SELECT posterior.context(sin(i * seed), i / 10.0::float8,
					i / 7.0::float8 ORDER BY i) AS c
				FROM generate_series(1, size) i) s;
	END $$;
});
$node->safe_psql('postgres', "SELECT posterior.load_model('$_', '$models/buffered.safetensors')")
	for @names;

sub cache
{
	return split /\|/, $node->safe_psql('postgres', "SELECT $_[0] FROM posterior.stat_cache()");
}

# What asking about a context twice adds to the counters.
sub twice
{
	my ($s, $model, $seed, $size) = @_;
	my @before = cache('hits, misses, evictions, private');
	is(ask($s, "SELECT ask('$model', $seed, $size)"), '', "$model is asked about $size rows")
		for 1 .. 2;
	my @after = cache('hits, misses, evictions, private');
	return map { $after[$_] - $before[$_] } 0 .. 3;
}

# ---- a session holds models, which have been read one by one while encodings came and went ----
my $session = session($node);
my $k = 0;
for my $model (@names)
{
	ask($session, "SELECT ask('tabular_small', " . ++$k . ', ' . (60 + $k * 53 % 390) . ')')
		for 1 .. 9;
	is(ask($session, "SELECT ask('$model', 1, 30)"), '', "$model is used");
}
my ($hits, $misses, $evictions, $private) = twice($session, 'tabular_small', 77, 1500);
is("$hits $misses $private", '1 1 0', 'an encoding of most of the cache is kept');
cmp_ok($evictions, '>', 0, 'and the small ones have given way');
leave($session);

# ---- an encoding in use is in the way: nothing gives way in vain ----
$node->restart;
$session = session($node);
ask($session, "SELECT ask('tabular_small', 1, 1000)");
my $holder = session($node);
like(ask($holder, "BEGIN; DECLARE answers CURSOR FOR SELECT posterior.predict(value, i)
		FROM (SELECT posterior.context(sin(g), g::float8 ORDER BY g) AS value
			FROM generate_series(1, 200) g) s, generate_series(1, 1000) i;
	FETCH 1 FROM answers"), qr/mixture|bars|gaussian/, 'an encoding is in use');
ask($session, "SELECT ask('tabular_small', $_, 50)") for 3 .. 6;
my ($entries) = cache('entries');
($hits, $misses, $evictions, $private) = twice($session, 'tabular_small', 2, 1450);
is("$hits $misses $private", '0 0 2', 'there is no stretch for a large one');
is($evictions, 0, 'and no other one has given way to it');
is((cache('entries'))[0], $entries, 'all are still there');
ask($holder, 'COMMIT');
($hits, $misses, $evictions, $private) = twice($session, 'tabular_small', 2, 1450);
is("$hits $misses $private", '1 1 0', 'when the one in use is free, the large one is kept');
leave($holder);
leave($session);

# ---- models whose encodings nothing uses: they do not keep all of the cache for ever ----
$node->restart;
$node->safe_psql('postgres', "SELECT posterior.load_model('t$_', file) FROM posterior.model_file
	WHERE name = 'tabular_small'") for 1 .. 5;
$session = session($node);
for my $t (1 .. 5)
{
	($hits, $misses, $evictions, $private) = twice($session, "t$t", $t, 20);
	is("$hits $misses $private", '1 1 0', "model $t of more than fit is shared, and its encoding");
}
($hits, $misses, $evictions, $private) = twice($session, 't1', 9, 900);
is("$hits $misses $private", '1 1 0', 'and other models make room for a large encoding');
leave($session);

# ---- what was beside models that have gone, and the cache with their database ----
$node->restart;
$node->safe_psql('template1', 'CREATE DATABASE gone TEMPLATE postgres');
$node->safe_psql('gone', "SELECT ask('t1', i, 20) FROM generate_series(1, 16) i");
$node->safe_psql('gone', "SELECT ask('t2', 1, 20)");
is((cache('entries'))[0], 17, 'encodings of two models');
$node->safe_psql('template1', 'DROP DATABASE gone');
is(join(' ', cache('entries, bytes')), '0 0', 'are forgotten with their database');
$session = session($node);
($hits, $misses, $evictions, $private) = twice($session, 'tabular_small', 8, 1500);
is("$hits $misses $private", '1 1 0', 'and a large one finds no fences');
leave($session);
$node->stop;
done_testing();
