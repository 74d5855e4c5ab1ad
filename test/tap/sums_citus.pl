# Sums of rows of a distributed table of Citus: workers add up their own rows, the coordinator
# merges one state of each shard; on two workers and on four these are bitwise the sums of all rows
# in one place. Aggregates, predictions and frames of other models by the distribution column run
# there.
# Runs where the extension citus is installed.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $SHARDS = 4;
my $models = $ENV{TEST_MODELS};
plan skip_all => 'no test models' if !defined $models || !-e "$models/sums.safetensors";

sub node
{
	my ($name, $libraries) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 'logical');
	$node->append_conf('postgresql.conf', qq{
		shared_preload_libraries = '$libraries'
		max_prepared_transactions = 20
		posterior.device = cpu
		posterior.maintenance_delay = -1
	});
	$node->start;
	return $node;
}

my $probe = node('probe', 'pg_posterior');
my $there = $probe->safe_psql('postgres',
	q{SELECT count(*) FROM pg_available_extensions WHERE name = 'citus'});
$probe->stop;
plan skip_all => 'no citus here' if $there eq '0';

my ($here, @workers) = map { node($_, 'citus, pg_posterior') } 'here', map { "worker$_" } 1 .. 4;
for my $node ($here, @workers)
{
	my $host = $node->host;
	$node->append_conf('postgresql.conf', qq{
		citus.local_hostname = '$host'
		citus.node_conninfo = 'sslmode=prefer'
		citus.shard_count = $SHARDS
		citus.enable_statistics_collection = off
	});
	$node->restart;
	$node->safe_psql('postgres', 'CREATE EXTENSION citus');
}

sub add_workers
{
	for my $node (@_)
	{
		my ($host, $port) = ($node->host, $node->port);
		$here->safe_psql('postgres', "SELECT citus_add_node('$host', $port)");
		is($node->safe_psql('postgres',
			q{SELECT count(*) FROM pg_extension WHERE extname = 'pg_posterior'}), '1',
			'the extension comes to ' . $node->name);
		load($node);
	}
}

sub load
{
	my ($node) = @_;
	$node->safe_psql('postgres', qq{SET citus.enable_ddl_propagation = off;
		DO 'BEGIN PERFORM posterior.load_model(''sums'', ''$models/sums.safetensors''); END';
		ALTER DATABASE postgres SET posterior.model = 'sums';});
}

my ($host, $port) = ($here->host, $here->port);
$here->safe_psql('postgres', qq{SELECT citus_set_coordinator_host('$host', $port);
	CREATE EXTENSION pg_posterior});
load($here);
add_workers(@workers[0, 1]);
# `whole` is a table of the coordinator
my $cells = q{SELECT k % 40 AS node, k, sin(k) AS a, CASE WHEN k % 5 > 0 THEN cos(2.0 * k) * 3 END
	AS b, (ARRAY['x', 'y', 'z', 'w'])[1 + k * k % 4] AS c,
	CASE WHEN k % 11 > 0 THEN sin(k) + cos(k) / 3 END AS y FROM generate_series(1, 4000) k};
$here->safe_psql('postgres', qq{
	CREATE TABLE whole AS $cells;
	CREATE TABLE reading (node int, k int, a float8, b float8, c text, y float8);
	SELECT create_distributed_table('reading', 'node');
	INSERT INTO reading SELECT * FROM whole;
	CREATE TABLE basis (basis posterior.context);
	INSERT INTO basis SELECT posterior.basis(y, a, b, c ORDER BY k) FROM whole WHERE k < 300;
	CREATE TABLE base AS SELECT basis FROM basis;
	SELECT create_reference_table('basis');
});

# Three ways: states of groups, contexts with the rows of groups, and a state of each shard.
my %merged = (
	'states of groups' => q{SELECT posterior.merge(context) AS context
		FROM (SELECT node, posterior.context(basis, y, a, b, c) AS context
			FROM reading, basis GROUP BY node) p},
	'rows of groups' => q{SELECT posterior.context(basis, r) AS context
		FROM (SELECT node, posterior.context(y, a, b, c) AS r FROM reading GROUP BY node) p,
			basis});
my $shards = q{run_command_on_shards('reading',
	'SELECT posterior.context(basis, y, a, b, c) FROM %s, basis')};
for my $n (2, 4)
{
	if ($n == 4)
	{
		add_workers(@workers[2, 3]);
		$here->safe_psql('postgres',
			q{SELECT rebalance_table_shards('reading', shard_transfer_mode => 'block_writes')});
	}
	is($here->safe_psql('postgres', q{SELECT count(DISTINCT nodeport) FROM citus_shards
		WHERE table_name = 'reading'::regclass}), $n, "rows lie on $n workers");
	for my $way (sort keys %merged)
	{
		like($here->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) $merged{$way}"),
			qr/coord_combine_agg.*Task Count: $SHARDS\b.*Query: SELECT \S*worker_partial_agg/s,
			"$n workers, $way: workers merge, too");
		# kept first: a query of local and distributed tables would move tables
		is($here->safe_psql('postgres', qq{CREATE TEMP TABLE merged AS $merged{$way};
			SELECT m.context OPERATOR(posterior.=) w.context, posterior.rows(m.context)
			FROM merged m, (SELECT posterior.context(basis, y, a, b, c) AS context
				FROM whole, base) w}), 't|' . (4000 - int(4000 / 11)),
			"$n workers, $way: all rows in one place");
	}
	is($here->safe_psql('postgres', qq{
		SELECT posterior.merge(result::posterior.context) OPERATOR(posterior.=)
			(SELECT posterior.context(basis, y, a, b, c) FROM whole, base),
			count(*) FROM $shards}), "t|$SHARDS", "$n workers: a state of each shard");
}

# Without such a form the arguments of all rows travel.
my $plain = q{SELECT posterior.context(basis, y, a, b, c) AS context FROM reading, basis};
is($here->safe_psql('postgres', qq{CREATE TEMP TABLE merged AS $plain;
	SELECT m.context OPERATOR(posterior.=) (SELECT posterior.context(basis, y, a, b, c)
		FROM whole, base) FROM merged m}), 't', 'rows that travel have the same sums');
my ($received, $unit) = $here->safe_psql('postgres',
	"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $plain")
	=~ /Tuple data received from nodes: (\d+) (\w+)/;
my $states = $here->safe_psql('postgres', "SELECT sum(octet_length(result)) FROM $shards");
note("$states bytes of states, $received $unit of rows");
cmp_ok($states, '<', $received * {bytes => 1, kB => 1024, MB => 1024 * 1024}->{$unit},
	'states are fewer bytes than the rows');

# Other models: groups by the distribution column, predictions from its contexts, and frames within
# it are computed by the workers, and are what the coordinator computes of its own rows.
my %by_node = (
	'an aggregate' => q{SELECT node, posterior.log_evidence(y, a ORDER BY k) AS e
		FROM %s GROUP BY node},
	'predictions' => q{SELECT r.node, r.k, posterior.predict(p.context, r.a)::text AS p
		FROM %s r JOIN (SELECT node, posterior.context(y, a) AS context FROM %s WHERE k < 400
			GROUP BY node) p USING (node) WHERE r.k > 3900},
	'frames' => q{SELECT node, k, posterior.regress(y, a) OVER (PARTITION BY node ORDER BY k
		ROWS BETWEEN 8 PRECEDING AND 1 PRECEDING)::text AS p FROM %s WHERE k < 800});
$_->safe_psql('postgres', q{SET citus.enable_ddl_propagation = off;
	ALTER DATABASE postgres SET posterior.model = 'tabular_small'}) for @workers;
my %called = ('an aggregate' => 'log_evidence', predictions => 'predict', frames => 'regress');
for my $what (sort keys %by_node)
{
	my ($far, $near) = map { (my $q = $by_node{$what}) =~ s/%s/$_/g; $q } 'reading', 'whole';
	my $set = "SET posterior.model = 'tabular_small';";
	like($here->safe_psql('postgres', "$set EXPLAIN (VERBOSE, COSTS OFF) $far"),
		qr/^Custom Scan \(Citus Adaptive\).*Query: SELECT [^\n]*posterior\.$called{$what}\(/s,
		"$what: computed by the workers");
	$here->safe_psql('postgres', "$set CREATE TABLE near AS $near");
	is($here->safe_psql('postgres', "$set CREATE TEMP TABLE far AS $far;
		SELECT (SELECT count(*) FROM far) > 30,
			count(*) FROM (TABLE far EXCEPT ALL TABLE near) d"), 't|0', "$what: the same there");
	$here->safe_psql('postgres', 'DROP TABLE near');
}

# What Citus does not offer on distributed tables is refused.
my (undef, undef, $error) = $here->psql('postgres', q{SELECT posterior.create_context('load',
	'reading', target => 'y', features => '{a,b}', model => 'sums')});
like($error, qr/triggers are not supported on distributed tables/, 'no context kept by triggers');
$_->stop for $here, @workers;

done_testing();
