# Models of several targets over the weights of a model of one: sessions share them, they keep the
# keys of a row once, stay while they are used, give way when they are not, and leave nothing.
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
use Unused;

my $models = $ENV{TEST_MODELS};
plan skip_all => 'no test models' if !defined $models || !-e "$models/decoupled_causal.safetensors";
my $node = PostgreSQL::Test::Cluster->new('each_target');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.cache_size = '8MB'
	posterior.device = cpu
	posterior.maintenance_delay = -1
});
$node->start;
sub cache { return $node->safe_psql('postgres', "SELECT $_[0] FROM posterior.stat_cache()") }
$node->safe_psql('postgres', 'CREATE EXTENSION pg_posterior');
$node->safe_psql('postgres', 'CREATE DATABASE other');
my $empty = cache('bytes');

# Answers about n targets, the i-th of them i times the first; the sum that a value of them has.
my $setup = qq{
	CREATE EXTENSION pg_posterior;
	SELECT posterior.load_model('each', '$models/decoupled_causal.safetensors');
	ALTER DATABASE other SET posterior.model = 'each';
	CREATE TABLE t AS SELECT i, i / 10.0::float8 AS x, sin(i) AS z, cos(i) AS y
		FROM generate_series(1, 200) i;
	CREATE FUNCTION targets(y float8, n int) RETURNS float8[] IMMUTABLE LANGUAGE sql AS
		'SELECT array_agg(y * k ORDER BY k) FROM generate_series(1, n) k';
	CREATE FUNCTION answers(n int, size int) RETURNS text STABLE LANGUAGE plpgsql AS \$\$
	BEGIN
		RETURN (SELECT posterior.predict_targets(c, 0.5::float8, 0.1::float8)::text
			FROM (SELECT posterior.context(targets(y, n), x, z ORDER BY i) AS c
				FROM t WHERE i <= size) s);
	END \$\$;
	CREATE FUNCTION fresh(n int, size int) RETURNS text STABLE LANGUAGE plpgsql
	SET posterior.cache = off AS \$\$ BEGIN RETURN answers(n, size); END \$\$;
	CREATE FUNCTION alone(n int, size int) RETURNS text STABLE LANGUAGE plpgsql AS \$\$
	BEGIN
		RETURN (SELECT array_agg(posterior.predict(c, 0.5::float8, 0.1::float8) ORDER BY k)::text
			FROM (SELECT k, posterior.context(y * k, x, z ORDER BY i) AS c
				FROM t, generate_series(1, n) k WHERE i <= size GROUP BY k) s);
	END \$\$;
};
$node->safe_psql('other', $setup);
sub other { return $node->safe_psql('other', $_[0]) }

# ---- keys are kept once: 16 targets take half of what 16 contexts do, and the keys of one ----
sub grown
{
	my $before = cache('bytes');
	other($_[0]);
	return cache('bytes') - $before;
}
other('SELECT answers(1, 200)');
my $one = grown('SELECT posterior.predict(posterior.context(99 * y, x, z ORDER BY i), 0.5::float8,
		0.1::float8) FROM t');
my $together = grown('SELECT answers(16, 200)');
cmp_ok($together, '<', 0.6 * 16 * $one, '16 targets share their keys');
cmp_ok($together, '>', 0.5 * 16 * $one, 'and have values of their own');
is(other('SELECT answers(16, 200) = alone(16, 200)'), 't', 'each is answered as if it were alone');
is(cache('private'), 0, 'all in the shared cache');

# ---- other sessions: of each number of targets one model and one encoding ----
my $hits = cache('hits');
is(grown('SELECT answers(16, 200)'), 0, 'another session makes nothing anew');
is(cache('hits'), $hits + 1, 'it finds the encoding');

# ---- a statement keeps its model, whatever happens to that name and to the cache ----
my $fill = q{DO $$ BEGIN
	FOR k IN 1 .. 40 LOOP
		PERFORM posterior.predict(c, 0.5::float8, 0.1::float8)
			FROM (SELECT posterior.context(y + random(), x, z ORDER BY i) AS c FROM t) s;
		PERFORM answers(2 + k % 30, 60 + k % 7);
	END LOOP;
END $$};
my $question = 'SELECT posterior.predict_targets(c, q / 10.0::float8, 0.1::float8)
	FROM (SELECT posterior.context(targets(y, 7), x, z ORDER BY i) AS c FROM t) s,
		generate_series(1, 6) q';
my @right = split /\n/, other("SET posterior.cache = off; $question");
my $reader = session($node, 'other');
is(ask($reader, "BEGIN; DECLARE answers CURSOR FOR $question; FETCH 2 FROM answers"),
	join("\n", @right[0 .. 1]), 'a cursor has asked');
other(qq{
	SELECT posterior.drop_model('each');
	SELECT posterior.load_model('each', '$models/decoupled_distance.safetensors');
});
my $evictions = cache('evictions');
other($fill) for 1 .. 3;
cmp_ok(cache('evictions'), '>', $evictions, 'the cache is full');
is(other('SELECT bool_and(answers(n, 200) = fresh(n, 200) AND answers(n, 200) = alone(n, 200))
		FROM generate_series(1, 12) n'), 't', 'other sessions use the model that is there now');
is(ask($reader, 'FETCH 2 FROM answers'), join("\n", @right[2 .. 3]),
	'the cursor goes on with the one that was');
like(ask($reader, 'SELECT 1 / 0'), qr/division by zero/, 'an error ends it');
is(ask($reader, 'ROLLBACK; SELECT answers(7, 200) = fresh(7, 200)'), 't',
	'then the session uses the new one, too');
leave($reader);

# ---- a worker encodes ahead what a context of columns gets ----
other(q{
	ALTER TABLE t ADD PRIMARY KEY (i), ADD v float8 NOT NULL DEFAULT 0.5;
	SELECT posterior.create_context('c', 't', '{y,v}', '{x,z}', order_by => 'i', model => 'each');
	SELECT posterior.warm_context('c');
});
sub of_context
{
	return other("SELECT $_[0] FROM posterior.stat_contexts WHERE name = 'c'");
}
my $bytes = of_context('bytes');
other(q{
	SELECT posterior.create_context('y', 't', 'y', '{x,z}', order_by => 'i', model => 'each');
	SELECT posterior.warm_context('y');
});
my $bytes_of_one = other(q{SELECT bytes FROM posterior.stat_contexts WHERE name = 'y'});
cmp_ok($bytes, '<', 1.6 * $bytes_of_one, 'two targets: the view tells the bytes of both');
cmp_ok($bytes, '>', 1.4 * $bytes_of_one, 'and that keys are there once');
$node->append_conf('postgresql.conf', 'posterior.maintenance_delay = 10');
$node->reload;
other('INSERT INTO t SELECT i, i / 10.0, sin(i), cos(i), cos(2 * i)
	FROM generate_series(201, 230) i');
ok($node->poll_query_until('other',
		q{SELECT rows = 230 FROM posterior.stat_contexts WHERE name = 'c'}), 'it has the new rows');
is(other(q{SELECT posterior.predict_targets('c'::name, q)::text
		= ARRAY[posterior.predict('y'::name, q), (posterior.predict_targets('c'::name, q))[2]]::text
	FROM (SELECT 0.5::float8 AS x, 0.1::float8 AS z) q}), 't', 'and answers as one of one target');

# ---- sessions side by side with different numbers of targets, in a cache that is too small ----
my @sides = map { session($node, 'other') } 1 .. 3;
my $mix = 'SELECT bool_and(answers(n, size) = fresh(n, size))
	FROM (SELECT 1 + (k * %d) %% 64 AS n, 100 + k %% 5 AS size FROM generate_series(1, 40) k) s';
for my $i (0 .. $#sides)
{
	$sides[$i]{out} = '';
	$sides[$i]{in} .= sprintf($mix, 5 + 6 * $i) . ";\n\\echo done\n";
	$sides[$i]{run}->pump_nb while length $sides[$i]{in};
}
for my $s (@sides)
{
	$s->{run}->pump until $s->{out} =~ /^done$/m;
	is($s->{out}, "t\ndone\n", 'right answers beside others');
}
# A session that ends by force lets go of what it holds.
ask($sides[0], "BEGIN; DECLARE answers CURSOR FOR $question; FETCH 2 FROM answers");
my $pid = ask($sides[0], 'SELECT pg_backend_pid()');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
eval { leave($_) } for @sides;
$node->poll_query_until('postgres',
	"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = 'other')")
	or die 'still there';

# ---- nothing is left: models that borrow weights are freed, and then these ----
cmp_ok(cache('bytes'), '>', $empty, 'the cache holds models and encodings');
once_unused($node, 'DROP DATABASE other');
is(cache('bytes'), $empty, 'none of a database that is dropped');
$node->stop;
done_testing();
