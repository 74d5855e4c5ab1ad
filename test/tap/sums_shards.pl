# Sums of rows that lie on other servers, by postgres_fdw: each server adds up its own rows, and one
# row of it travels; merged, they are bitwise the sums of all rows in one place, on two servers and
# on four. A standby has them and answers from them while its primary writes.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $NODES = 4;
my $ROWS = 2000;				# of a node
my $models = $ENV{TEST_MODELS};
plan skip_all => 'no test models' if !defined $models || !-e "$models/sums.safetensors";

sub node
{
	my ($name, @init) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(@init);
	$node->append_conf('postgresql.conf', q{
		shared_preload_libraries = 'pg_posterior'
		posterior.device = cpu
		posterior.maintenance_delay = -1
		max_standby_streaming_delay = -1
	});
	$node->start;
	return $node;
}

my $here = node('here', allows_streaming => 1);
if ($here->safe_psql('postgres',
			q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'}) eq '0')
{
	plan skip_all => 'no postgres_fdw here';
}
my $model = qq{CREATE EXTENSION pg_posterior;
	DO 'BEGIN PERFORM posterior.load_model(''sums'', ''$models/sums.safetensors''); END';
	ALTER DATABASE postgres SET posterior.model = 'sums';
};
$here->safe_psql('postgres', $model . q{
	CREATE EXTENSION postgres_fdw;
	CREATE TABLE reading (node int, k int, a float8, b float8, c text, y float8)
		PARTITION BY LIST (node);
	CREATE TABLE whole (LIKE reading);
	CREATE TABLE basis (basis posterior.context);
	ALTER DATABASE postgres SET enable_partitionwise_aggregate = on;
});
my @there = map { node("there$_") } 1 .. $NODES;

# The rows of a node are made there.
sub rows_of
{
	my ($into, $node) = @_;
	return qq{INSERT INTO $into SELECT $node, k, sin(k * $node), CASE WHEN k % 5 > 0 THEN
			cos(2.0 * k) * 3 END, (ARRAY['x', 'y', 'z', 'w'])[1 + k * k % 4],
			CASE WHEN k % 11 > 0 THEN sin(k * $node) + cos(k) / 3 END
		FROM generate_series(1, $ROWS) k;};
}
my $user = $here->safe_psql('postgres', 'SELECT current_user');
for my $i (1 .. $NODES)
{
	my $node = $there[$i - 1];
	my ($host, $port) = ($node->host, $node->port);
	$node->safe_psql('postgres', $model
			. 'CREATE TABLE reading (node int, k int, a float8, b float8, c text, y float8);'
			. rows_of('reading', $i));
	$here->safe_psql('postgres', qq{
		CREATE SERVER there$i FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host',
			port '$port', dbname 'postgres', extensions 'pg_posterior');
		CREATE USER MAPPING FOR CURRENT_USER SERVER there$i OPTIONS (user '$user');
	} . rows_of('whole', $i));
}
$here->safe_psql('postgres',
	'INSERT INTO basis SELECT posterior.basis(y, a, b, c ORDER BY node, k) FROM whole
		WHERE k < 100');

my $parts = q{SELECT node, posterior.context((SELECT basis FROM basis), y, a, b, c) AS context
	FROM reading GROUP BY node};
my $merged = "SELECT posterior.merge(context) AS context FROM ($parts) p";
for my $n (2, 4)
{
	$here->safe_psql('postgres', qq{
		CREATE FOREIGN TABLE reading$_ PARTITION OF reading FOR VALUES IN ($_) SERVER there$_
			OPTIONS (table_name 'reading');}) for $n / 2 + ($n == 2 ? 0 : 1) .. $n;
	$here->safe_psql('postgres', 'ANALYZE reading');
	my $plan = $here->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) $merged");
	is(() = ($plan =~ /Remote SQL: SELECT [^\n]*posterior\.context\([^\n]*GROUP BY/g), $n,
		"$n servers: each adds up its own rows");
	my $ran = $here->safe_psql('postgres',
		"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $merged");
	is(() = ($ran =~ /Foreign Scan \(actual rows=1(?:\.00)? loops=1\)/g), $n,
		"$n servers: one row of each travels");
	is($here->safe_psql('postgres', qq{SELECT m.context OPERATOR(posterior.=) w.context,
			posterior.rows(m.context)
		FROM ($merged) m, (SELECT posterior.context(basis, y, a, b, c) AS context
			FROM whole, basis WHERE node <= $n) w}),
		't|' . ($n * ($ROWS - int($ROWS / 11))), "$n servers: merged = all rows in one place");
	# a row is sent as text: of a context its bytes in hexadecimal digits
	my ($states, $rows) = split /\|/, $here->safe_psql('postgres', qq{
		SELECT (SELECT sum(octet_length(context::text)) FROM ($parts) p),
			(SELECT sum(octet_length(reading::text)) FROM reading)});
	note("$n servers: $states bytes of states, $rows of rows");
	cmp_ok($states, '<', $rows, "$n servers: fewer bytes than the rows");
}

# Rows deleted there are taken away by a state of theirs, made there.
my $gone = 'k % 7 = 3';
my $before = $here->safe_psql('postgres', "CREATE TABLE state AS $merged");
$here->safe_psql('postgres', qq{UPDATE state SET context = posterior.without(context,
	(SELECT posterior.merge(c) FROM (SELECT posterior.context((SELECT basis FROM basis),
		y, a, b, c) AS c FROM reading WHERE $gone GROUP BY node) p))});
$_->safe_psql('postgres', "DELETE FROM reading WHERE $gone") for @there;
is($here->safe_psql('postgres', qq{SELECT s.context OPERATOR(posterior.=) m.context
	FROM state s, ($merged) m}), 't', 'deleted there, taken away here');

# Frames and aggregates of any model that are grouped by the node run there.
my $frame = $here->safe_psql('postgres', q{EXPLAIN (VERBOSE, COSTS OFF)
	SELECT node, posterior.log_evidence(y, a ORDER BY k) FROM reading GROUP BY node});
is(() = ($frame =~ /Remote SQL: SELECT [^\n]*posterior\.log_evidence\(/g), $NODES,
	'the sequence of each node is computed there');

# A standby of the coordinator, while the primary writes.
$here->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($here, 'copy', has_streaming => 1);
$standby->start;
my $ask = q{SELECT posterior.predict(context, x / 3.0, NULL::float8, 'y') FROM state,
	generate_series(-3, 3) x};
for my $turn (1, 2, 4)
{
	$here->safe_psql('postgres', qq{
		UPDATE state SET context = posterior.without(context, y, a, b, c) FROM whole
		WHERE node = 1 AND k = $turn});
	$here->wait_for_catchup($standby, 'replay', $here->lsn('insert'));
	my $answer = $here->safe_psql('postgres', $ask);
	is($standby->safe_psql('postgres', $ask), $answer, "a standby answers, $turn");
	is($standby->safe_psql('postgres', q{SELECT posterior.rows(posterior.context(basis, y, a, b, c))
		FROM whole, basis}), $here->safe_psql('postgres', 'SELECT count(y) FROM whole'),
		"and adds up rows, $turn");
}
$standby->stop;
$_->stop for $here, @there;

done_testing();
