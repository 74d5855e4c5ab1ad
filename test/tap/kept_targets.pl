# Named contexts of several targets that keep sums: sessions that write at once, folding, a crash
# and a standby leave them the sums of the rows, without reading these; large tables are added up by
# several processes.
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
plan skip_all => 'no test models' if !defined $models || !-e "$models/mean_prefix.safetensors";

my $node = PostgreSQL::Test::Cluster->new('targets');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = 10
	posterior.model = 'mean_prefix'
	parallel_setup_cost = 0
	parallel_tuple_cost = 0
	parallel_leader_participation = off
	autovacuum = off
});
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	DO 'BEGIN PERFORM posterior.load_model(''mean_prefix'',
		''$models/mean_prefix.safetensors''); END';
	CREATE TABLE t (k serial PRIMARY KEY, a float8, b float8, u float8, v numeric, y float8[]);
	INSERT INTO t (a, b, u, v, y) SELECT sin(i), cos(i), i, -i, ARRAY[i, -i]
		FROM generate_series(1, 20000) i;
	CREATE FUNCTION answer(name text) RETURNS text STABLE LANGUAGE sql AS
		\$\$ SELECT posterior.predict_targets(name::name, '{"a": 0.3, "b": 0.1}'::jsonb)::text \$\$;
	CREATE FUNCTION answer_read(name text) RETURNS text STABLE LANGUAGE plpgsql
		SET posterior.cache = off AS \$\$ BEGIN RETURN answer(name); END \$\$;
	CREATE FUNCTION same() RETURNS text STABLE LANGUAGE sql AS \$\$
		SELECT posterior.rows(c) || CASE WHEN c OPERATOR(posterior.=) (SELECT
				posterior.context(posterior.basis(c), ARRAY[u, v], a, b) FROM t)
			AND s OPERATOR(posterior.=) (SELECT
				posterior.context(posterior.basis(s), y, a, b) FROM t)
			AND answer('columns') = answer_read('columns')
			AND answer('arrays') = answer_read('arrays') THEN ' same' ELSE ' differ' END
		FROM posterior.sums('columns') c, posterior.sums('arrays') s \$\$;
});

# ---- made by one process or several --------------------------------------------------------------
sub made
{
	my ($name, $workers, $target) = @_;
	my $said;
	$node->psql('postgres', qq{SET max_parallel_workers_per_gather = $workers;
		SET min_parallel_table_scan_size = 0; SET client_min_messages = debug1;
		SELECT posterior.create_context('$name', 't', '$target', '{a,b}', maintain => 'sums')},
		stderr => \$said);
	return $said =~ /(\d+) rows were added up, (\d+) of them by parallel/ ? $2 : -1;
}
is(made('alone', 0, '{u,v}'), -1, 'one process reads the rows');
cmp_ok(made('columns', 2, '{u,v}'), '>', 0, 'workers add them up');
is($node->safe_psql('postgres', q{SELECT count(DISTINCT (basis::text, fit,
	posterior.sums(name)::text)) FROM posterior.context_definition}), '1', 'to the same sums');
is(made('arrays', 2, 'y'), -1, 'of arrays one process reads the rows');
is($node->safe_psql('postgres', q{SELECT count(DISTINCT (basis::text, fit,
	posterior.sums(name)::text)) FROM posterior.context_definition;
	SELECT posterior.drop_context('alone')}), "1\n", 'which gives the same');
for my $case (
	[ 'infinite', "v = 'infinity'", qr/22003: a target is infinite/ ],
	[ 'too large', "v = '1e400'", qr/22003: a target is infinite/ ])
{
	my ($name, $change, $expected) = @$case;
	my %said;
	for my $workers (0, 2)
	{
		$node->psql('postgres', qq{\\set VERBOSITY verbose
			SET max_parallel_workers_per_gather = $workers; SET min_parallel_table_scan_size = 0;
			BEGIN; UPDATE t SET $change WHERE k = 19999;
			SELECT posterior.refresh_context('columns')}, stderr => \$said{$workers});
		($said{$workers}) = $said{$workers} =~ /(ERROR: .*)/;
	}
	like($said{0}, $expected, "$name: it is refused");
	is($said{2}, $said{0}, 'by workers in the same words');
}
is($node->safe_psql('postgres', 'SELECT same()'), '20000 same', 'the sums are those of the rows');

# ---- writers at once -----------------------------------------------------------------------------
# Whether a statement, after these, reads no row.
sub kept
{
	my ($asked, $before) = @_;
	my ($out, $err) = ('', '');
	$asked->psql('postgres', ($before // '') . q{SET client_min_messages = debug1;
		SELECT answer('columns') IS NOT NULL, answer('arrays') IS NOT NULL},
		stdout => \$out, stderr => \$err);
	return $err =~ /rows are read because (.*)/ ? $1 : 'kept';
}
is(kept($node), 'kept', 'answers read no row');
is(kept($node, 'BEGIN; UPDATE t SET v = 3 WHERE k = 8; SAVEPOINT s; DELETE FROM t; ROLLBACK TO s;'),
	'kept', 'nor do they after own writes');
my @writers = map { session($node) } 1 .. 4;
my @writes = (
	q{INSERT INTO t (a, b, u, v, y) SELECT i / 100.0, 0, i, 1, ARRAY[i, 1]
		FROM generate_series(1, 100) i;},
	q{UPDATE t SET v = v + 1, y = ARRAY[y[1], y[2] + 1] WHERE k BETWEEN 1 AND 300;},
	q{UPDATE t SET u = u / 2, y = ARRAY[y[1] / 2, y[2]] WHERE k BETWEEN 301 AND 600;},
	q{DELETE FROM t WHERE k IN (SELECT k FROM t WHERE k BETWEEN 1000 AND 5000
		ORDER BY k LIMIT 50);});
for my $round (1 .. 5)
{
	# all begin before any is asked for its end
	for my $w (0 .. 3)
	{
		$writers[$w]->{in} .= "BEGIN; $writes[$w] " . ($round == 3 && $w == 1 ? 'ROLLBACK'
			: 'COMMIT') . ";\n";
		$writers[$w]->{run}->pump_nb while length $writers[$w]->{in};
	}
	like($node->safe_psql('postgres', 'SELECT same()'), qr/ same/, "round $round: meanwhile");
	is(ask($writers[$_], 'SELECT 1'), '1', "writer $_ is done") for 0 .. 3;
	my $rows = 20000 + $round * 50;
	is($node->safe_psql('postgres', 'SELECT same()'), "$rows same", 'and afterwards');
	is(kept($node), 'kept', 'without reading');
}
leave($_) for @writers;
$node->poll_query_until('postgres', 'SELECT count(*) < 1024 FROM posterior_internal.noted_row')
	or die 'notes stay';
is($node->safe_psql('postgres', 'SELECT same()'), '20250 same', 'what is folded stays the same');

# ---- a target that drifts ------------------------------------------------------------------------
my $drifts = q{SELECT string_agg(format('%s %s', name, drift > 1), ', ' ORDER BY name)
	FROM posterior.stat_contexts};
is($node->safe_psql('postgres', $drifts), 'arrays f, columns f', 'no target has drifted');
$node->safe_psql('postgres', 'UPDATE t SET v = v - 100000, y = ARRAY[y[1], y[2] - 100000]');
is($node->safe_psql('postgres', 'SELECT same()'), '20250 same', 'the second target moves');
is($node->safe_psql('postgres', $drifts), 'arrays t, columns t', 'and is told');
$node->safe_psql('postgres', q{SELECT posterior.refresh_context('columns');
	SELECT posterior.refresh_context('arrays')});
is($node->safe_psql('postgres', "SELECT same(); $drifts"), "20250 same\narrays f, columns f",
	'until the basis is made anew');

# ---- a crash, and a standby ----------------------------------------------------------------------
my $open = session($node);
ask($open, 'BEGIN; DELETE FROM t WHERE k < 50; SELECT 1');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT same()'), '20250 same', 'after a crash');
is(kept($node), 'kept', 'without reading');
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', 'UPDATE t SET v = 0 WHERE k < 20; DELETE FROM t WHERE k = 20;
	UPDATE t SET y[2] = 0 WHERE k < 20');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', 'SELECT same()'), '20249 same', 'a standby has them');
is(kept($standby), 'kept', 'and reads no rows');
done_testing();
