# The counters of the cache: which sessions share encodings, how much of an encoding stays after a
# change, and how the counters are reset.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $models = $ENV{TEST_MODELS};
my $node = PostgreSQL::Test::Cluster->new('counters');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = -1
});
$node->start;
my $setup = qq{
	CREATE EXTENSION pg_posterior;
	SELECT posterior.load_model('causal', '$models/packed_causal.safetensors'),
		posterior.load_model('prefix', '$models/prefix_causal_scaled.safetensors');
	CREATE TABLE t (k int PRIMARY KEY, x float8, z int NOT NULL DEFAULT 1, y float8, note text);
	INSERT INTO t (k, x, y) SELECT i, i / 10.0, sin(i) FROM generate_series(1, 40) i;
	SELECT posterior.create_context('c', 't', 'y', features => '{x,z}', order_by => 'k',
			model => 'causal');
	SELECT posterior.create_context('p', 't', 'y', features => '{x,z}', order_by => 'k',
			model => 'prefix');
	CREATE TABLE kept AS SELECT posterior.context(y, x, z ORDER BY k) AS value FROM t;
};
$node->safe_psql('postgres', $setup);
$node->safe_psql('postgres', q{
	ALTER DATABASE postgres SET posterior.model = 'causal';
	CREATE ROLE whole; CREATE ROLE columns; CREATE ROLE first_rows; CREATE ROLE last_rows;
	GRANT SELECT ON kept TO PUBLIC;
	CREATE FUNCTION lent() RETURNS text STABLE LANGUAGE sql SECURITY DEFINER AS $$
		SELECT posterior.predict(value, 0.5::float8, 2)::text FROM kept $$;
});

# How much counters grow with a statement, as text; the answers with and without the cache must be
# equal.
sub growth
{
	my ($source, $counters, $statement, $role) = @_;
	my $sum = "SELECT concat_ws(' ', $counters) FROM $source";
	my $as = $role ? "SET ROLE $role; SET posterior.row_security = private;" : '';
	my @before = split / /, $node->safe_psql('postgres', $sum);
	my $answer = $node->safe_psql('postgres', "$as $statement");
	my @after = split / /, $node->safe_psql('postgres', $sum);
	my $right = $node->safe_psql('postgres', "$as SET posterior.cache = off; $statement");
	return join(' ', map { $after[$_] - $before[$_] } 0 .. $#after)
		. ($answer eq $right && $answer ne '' ? '' : ' differs');
}
sub value
{
	return growth('posterior.stat_cache()', 'hits, misses, appends, private',
			$_[1] // 'SELECT posterior.predict(value, 0.5::float8, 2) FROM kept', $_[0]);
}
sub named
{
	my ($name, $role) = @_;
	return growth("posterior.stat_contexts WHERE name = '$name'",
		'skips, deltas, reads, extensions, rebuilds, private',
		"SELECT posterior.predict('$name', q) FROM (SELECT 0.5::float8 AS x, 2 AS z) q", $role);
}
sub entries { return $node->safe_psql('postgres', 'SELECT entries FROM posterior.stat_cache()') }

# ---- a context value: each role has its own encoding, so that timing tells nothing about the
# queries of other roles ----
is(value(), '0 1 0 0', 'the first question about a value encodes it');
is(value(), '1 0 0 0', 'the second one, of another session, finds it');
is(value('whole'), '0 1 0 0', 'another role does not');
is(value('whole'), '1 0 0 0', 'but for its own');
is(value('columns'), '0 1 0 0', 'nor does a third');
is(value('columns', 'SELECT lent()'), '1 0 0 0', 'a function of the first role does');
is(entries(), 3, 'one for each role');

# ---- a named context: one encoding for all roles that may read the whole table ----
my $entries = entries();
is(named('c'), '0 0 0 0 1 0', 'the first question about a context encodes it');
is(named('c'), '1 0 0 0 0 0', 'the second one reads nothing');
$node->safe_psql('postgres', q{GRANT SELECT ON t TO whole;
			GRANT SELECT (k, x, y, z) ON t TO columns});
is(named('c', 'whole'), '1 0 0 0 0 0', 'nor does another role that may read the table');
is(named('c', 'columns'), '0 0 1 0 0 0', 'one that may read columns reads the rows');
is(named('c', 'columns'), '0 0 1 0 0 0', 'each time');
$node->safe_psql('postgres', q{INSERT INTO t (k, x, y) VALUES (41, 1, 1)});
is(named('c', 'columns'), '0 0 0 1 0 0',
	'also new ones, with all others, though only one is encoded');
is(named('c'), '1 0 0 0 0 0', 'what is proven by that holds for others');
$node->safe_psql('postgres', q{INSERT INTO t (k, x, y) VALUES (42, 1, 1)});
is(named('c'), '0 0 0 1 0 0', 'though not where the last row lies: after a new one all are read');
$node->safe_psql('postgres', q{INSERT INTO t (k, x, y) VALUES (43, 1, 1)});
is(named('c', 'whole'), '0 1 0 0 0 0', 'by a role that may, so that it is known again');
is(entries(), $entries + 1, 'all with the same encoding');
$node->safe_psql('postgres', q{DELETE FROM t WHERE k > 40; SELECT posterior.warm_context('c')});

# ---- under policies each role computes privately: nothing is shared, and no proof made ----
$node->safe_psql('postgres', q{
	ALTER TABLE t ENABLE ROW LEVEL SECURITY;
	CREATE POLICY first_rows ON t TO first_rows USING (k <= 20);
	CREATE POLICY last_rows ON t TO last_rows USING (k > 20);
	GRANT SELECT ON t TO first_rows, last_rows;
	SELECT posterior.warm_context('c');
});
$entries = entries();
is(named('c'), '1 0 0 0 0 0', 'the owner reads nothing');
is(named('c', 'last_rows'), '0 0 0 0 0 1',
	'a role of which a policy hides the first rows computes for itself');
is(named('c', 'last_rows'), '0 0 0 0 0 1', 'again');
is(named('c', 'first_rows'), '0 0 1 0 0 0',
	'one of which it hides the last rows finds the first ones encoded, after reading them');
is(entries(), $entries, 'nothing of that is kept');
is(named('c'), '1 0 0 0 0 0', 'the owner reads nothing still');
$node->safe_psql('postgres', q{ALTER TABLE t DISABLE ROW LEVEL SECURITY;
			SELECT posterior.warm_context('c'), posterior.warm_context('p')});

# ---- how much stays after a change: all before the first row that differs, unless it is in the
# prefix of rows that see each other, here the first 32 ----
is($node->safe_psql('postgres',
			q{SELECT string_agg(name || ' ' || prefix_rows || ' ' || suffix_rows, ', '
			ORDER BY name) FROM posterior.stat_contexts}),
	'c 0 40, p 32 8', 'prefixes');
my @changes = (
	# statement; result for the causal context; for the one with a prefix
	['UPDATE t SET y = 9 WHERE k = 40', '0 0 0 1 0 0', '0 0 0 1 0 0', 'the last row is changed'],
	['UPDATE t SET y = 8 WHERE k = 34', '0 0 0 1 0 0', '0 0 0 1 0 0',
		'a row behind the prefix is changed'],
	["UPDATE t SET note = 'x' WHERE k = 3", '0 0 1 0 0 0', '0 0 1 0 0 0',
		'a column is changed that is not used'],
	['DELETE FROM t WHERE k = 40', '0 0 1 0 0 0', '0 0 1 0 0 0', 'the last row is deleted'],
	['DELETE FROM t WHERE k = 36', '0 0 0 1 0 0', '0 0 0 1 0 0',
		'a row behind the prefix is deleted'],
	['UPDATE t SET y = 7 WHERE k = 32', '0 0 0 1 0 0', '0 0 0 0 1 0',
		'the last row of the prefix is changed'],
	['UPDATE t SET y = 6 WHERE k = 3', '0 0 0 1 0 0', '0 0 0 0 1 0',
		'a row in the prefix is changed'],
	['DELETE FROM t WHERE k = 5', '0 0 0 1 0 0', '0 0 0 0 1 0', 'a row in the prefix is deleted']);
for my $change (@changes)
{
	my ($statement, $causal, $prefix, $name) = @$change;
	$node->safe_psql('postgres', $statement);
	is(named('c'), $causal, "$name: without a prefix");
	is(named('p'), $prefix, "$name: with one");
	is(named('c') . ', ' . named('p'), '1 0 0 0 0 0, 1 0 0 0 0 0',
		"$name: and then nothing is read");
}

# ---- a reset affects the counters of this database only; encodings stay ----
$node->safe_psql('postgres', 'CREATE DATABASE twin');
$node->safe_psql('twin', $setup . q{SELECT posterior.warm_context('c')});
my $all = 'SELECT bool_and(skips + deltas + reads + extensions + rebuilds + private > 0), sum(rows)
		FROM posterior.stat_contexts';
my $rows = $node->safe_psql('postgres', 'SELECT sum(rows) FROM posterior.stat_contexts');
is($node->safe_psql('postgres', $all), "t|$rows", 'there is something to reset');
$entries = entries();
is($node->safe_psql('postgres', 'SELECT hits > 0 AND misses > 0 AND appends > 0 AND private > 0
			FROM posterior.stat_cache()'), 't', 'in the cache as well');
$node->safe_psql('postgres', 'SELECT posterior.stat_reset()');
is($node->safe_psql('postgres', 'SELECT DISTINCT skips, deltas, reads, extensions, rebuilds, private
			FROM posterior.stat_contexts'), '0|0|0|0|0|0', 'contexts are');
is($node->safe_psql('postgres', 'SELECT hits, misses, appends, evictions, private
			FROM posterior.stat_cache()'), '0|0|0|0|0', 'and so is the cache');
is($node->safe_psql('postgres', 'SELECT sum(rows) FROM posterior.stat_contexts'), $rows,
		'how large encodings are stays');
is(entries(), $entries, 'how many there are, too');
is($node->safe_psql('twin', q{SELECT rebuilds FROM posterior.stat_contexts WHERE name = 'c'}), '1',
		'counters of another database are its own');
is(named('c'), '1 0 0 0 0 0', 'and the next question reads nothing');
is($node->safe_psql('postgres', q{SELECT skips, rebuilds FROM posterior.stat_contexts
			WHERE name = 'c'}), '1|0', 'of which alone the counters know');

# ---- models keep contexts as posterior.models says: a row more is encoded by itself, or all
# are ----
$node->safe_psql('postgres', q{
	CREATE TABLE behaviour AS SELECT m FROM unnest('{mean,latent,decoupled,'
		'decoupled_one,decoupled_causal,scan,scan_prefix_causal,joint_full,joint_prefix,'
		'incremental}'::text[]) m});
$node->safe_psql('postgres',
	"SELECT posterior.load_model(m, '$models/' || m || '.safetensors') FROM behaviour");
$node->safe_psql('postgres', q{
	SELECT posterior.create_context(m, 't', 'y', features => '{x,z}', order_by => 'k', model => m)
	FROM behaviour});
my @kinds = split /\n/, $node->safe_psql('postgres', q{
	SELECT name || ' ' || appendable FROM posterior.models JOIN behaviour ON m = name
	ORDER BY name});
is(scalar(@kinds), 10, 'models of each kind');
for my $kind (@kinds)
{
	my ($model, $appendable) = split / /, $kind;
	named($model);
	$node->safe_psql('postgres', 'INSERT INTO t (k, x, y) SELECT max(k) + 1, 0.3, 0.2 FROM t');
	my $grown = named($model);
	is($grown, $appendable eq 'true' ? '0 1 0 0 0 0' : '0 0 0 0 1 0', "$model: a row more");
}

$node->stop;
done_testing();
