# Models whose contexts are rows, over partitions of other servers through postgres_fdw: aggregates
# by the partition key are computed there, and a merged context scores rows where they lie; frames
# and predictions of single rows are computed here, or there by views. Each answer is that of all
# rows in one place; what travels is read in the plans and counted.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $ROWS = 200;					# of a node

sub node
{
	my ($name) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	$node->append_conf('postgresql.conf', q{
		shared_preload_libraries = 'pg_posterior'
		posterior.device = cpu
		posterior.maintenance_delay = -1
		posterior.model = tabular_small
	});
	$node->start;
	return $node;
}

my $here = node('here');
if ($here->safe_psql('postgres',
			q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'}) eq '0')
{
	plan skip_all => 'no postgres_fdw here';
}
my @there = map { node("there$_") } 1, 2;
my $user = $here->safe_psql('postgres', 'SELECT current_user');
my $columns = '(node int, sensor text, k int, a float8, b float8, y float8)';
$here->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	CREATE EXTENSION postgres_fdw;
	CREATE TABLE reading $columns PARTITION BY LIST (node);
	CREATE TABLE whole $columns;
	CREATE TABLE framed (node int, k int, mean float8) PARTITION BY LIST (node);
	ALTER DATABASE postgres SET enable_partitionwise_aggregate = on;
});
# Predictions of each row from the eight before it; a view of them is a table to other servers.
my $frames = q{SELECT node, k, posterior.mean(posterior.regress(y, a) OVER (PARTITION BY sensor
	ORDER BY k ROWS BETWEEN 8 PRECEDING AND 1 PRECEDING)) AS mean};
for my $i (1, 2)
{
	my $node = $there[$i - 1];
	my ($host, $port) = ($node->host, $node->port);
	my $rows = qq{SELECT $i, (ARRAY['p', 'q', 'r', 's'])[1 + k % 4], k, sin(k * $i),
			cos(2.0 * k), sin(k * $i) + cos(k) / 3
		FROM generate_series(1, $ROWS) k};
	$node->safe_psql('postgres', qq{
		CREATE EXTENSION pg_posterior;
		CREATE TABLE reading $columns;
		INSERT INTO reading $rows;
		ANALYZE reading;
		CREATE VIEW framed AS $frames FROM reading;
	});
	$here->safe_psql('postgres', qq{
		INSERT INTO whole $rows;
		CREATE SERVER there$i FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host',
			port '$port', dbname 'postgres', extensions 'pg_posterior');
		CREATE USER MAPPING FOR CURRENT_USER SERVER there$i OPTIONS (user '$user');
		CREATE FOREIGN TABLE reading$i PARTITION OF reading FOR VALUES IN ($i) SERVER there$i
			OPTIONS (table_name 'reading');
		CREATE FOREIGN TABLE framed$i PARTITION OF framed FOR VALUES IN ($i) SERVER there$i
			OPTIONS (table_name 'framed');
	});
}
$here->safe_psql('postgres', 'ANALYZE reading');

sub plan_of
{
	my ($query) = @_;
	return $here->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) $query");
}

# Rows that come from other servers, and that they have the same content as those of `whole`.
sub travels
{
	my ($query, $rows, $what) = @_;
	my $ran = $here->safe_psql('postgres',
		"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");
	my $sum = 0;

	$sum += $1 * $2 while $ran =~ /Foreign Scan[^\n]*\(actual rows=(\d+)(?:\.00)? loops=(\d+)\)/g;
	is($sum, $rows, "$what: $rows rows travel");
}

sub same
{
	my ($query, $what) = @_;
	(my $near = $query) =~ s/\breading\b/whole/g;
	is($here->safe_psql('postgres', "SELECT count(*) > 0 FROM ($query) q"), 't', "$what: rows");
	is($here->safe_psql('postgres', qq{SELECT count(*)
		FROM (($query EXCEPT ALL $near) UNION ALL ($near EXCEPT ALL $query)) d}), '0',
		"$what: as in one place");
}

# Groups that have the partition key: the whole aggregate runs there.
my $density = q{posterior.log_density((SELECT posterior.context(y, a, b) FROM whole
	WHERE k <= 40), y, a, b)};
my %groups = (
	'contexts' => [q{SELECT node, posterior.context(y, a, b) AS context FROM reading GROUP BY node},
		'context', 2],
	'finer groups' => [q{SELECT node, sensor, posterior.log_evidence(y, a ORDER BY k) AS e
		FROM reading GROUP BY node, sensor}, 'log_evidence', 8],
	'labels' => [q{SELECT node, posterior.class_context(sensor, a) AS context FROM reading
		GROUP BY node}, 'class_context', 2],
	'scores by a context from here' => [qq{SELECT node, round($density\::numeric, 6) AS density
		FROM reading WHERE k > 40 GROUP BY node}, 'log_density', 2]);
for my $what (sort keys %groups)
{
	my ($query, $called, $rows) = @{$groups{$what}};
	is(() = (plan_of($query) =~ /Remote SQL: SELECT [^\n]*posterior\.$called\([^\n]*GROUP BY/g), 2,
		"$what: computed there");
	travels($query, $rows, $what);
	same($query, $what);
}
# A row is sent as text: a context of rows is as large as its rows, in hexadecimal digits.
my ($contexts, $rows) = split /\|/, $here->safe_psql('postgres', qq{SELECT
	(SELECT sum(octet_length(p::text)) FROM ($groups{contexts}[0]) p),
	(SELECT sum(octet_length((node, y, a, b)::text)) FROM reading)});
note("$contexts bytes of contexts, $rows of rows");
cmp_ok($contexts, '<', $rows, 'contexts are fewer bytes than rows as text');

# Groups without it: rows travel, with the columns that are needed.
my $by_sensor = 'SELECT sensor, posterior.context(y, a) AS context FROM reading GROUP BY sensor';
my $plan = plan_of($by_sensor);
is(() = ($plan =~ /Remote SQL: SELECT sensor, a, y FROM public\.reading\b/g), 2,
	'groups across servers: columns travel');
travels($by_sensor, 2 * $ROWS, 'groups across servers');
same($by_sensor, 'groups across servers');

# Predictions of single rows: functions that read a model are not immutable, and stay here.
my $predicted = q{SELECT r.node, r.k, posterior.mean(posterior.predict(c.context, r.a, r.b)) AS mean
	FROM reading r JOIN (SELECT node, posterior.context(y, a, b) AS context FROM reading
		WHERE k <= 40 GROUP BY node) c USING (node) WHERE r.k > 190};
$plan = plan_of($predicted);
unlike($plan, qr/Remote SQL: [^\n]*posterior\.predict/, 'predictions are computed here');
is(() = ($plan =~ /Remote SQL: [^\n]*posterior\.context\(/g), 2, 'by contexts made there');
travels($predicted, 2 + 2 * 10, 'predictions');
same($predicted, 'predictions');

# Frames: window functions stay here. A view there computes them there.
my $framed = "$frames FROM reading";
$plan = plan_of($framed);
unlike($plan, qr/Remote SQL: [^\n]*posterior\./, 'frames are computed here');
travels($framed, 2 * $ROWS, 'frames');
my $view = 'SELECT node, k, mean FROM framed WHERE node = 2 AND k > 190';
is(() = (plan_of($view) =~ /Remote SQL: SELECT node, k, mean FROM public\.framed WHERE/g), 1,
	'frames of a view: only its rows are asked for, of the server that has them');
travels($view, 10, 'frames of a view');
is($here->safe_psql('postgres', qq{SELECT count(*) FROM ($view EXCEPT ALL SELECT node, k, mean FROM
	($frames FROM whole WHERE node = 2) w) d}), '0', 'frames of a view: as in one place');
$_->stop for $here, @there;

done_testing();
