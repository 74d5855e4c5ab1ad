# Contexts of labels: the shared cache knows their labels without reading the table; dumps and
# standbys carry them.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Same;
use Test::More;

my $models = $ENV{TEST_MODELS};
my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'pg_posterior'\nposterior.maintenance_delay = -1\n"
	. "max_standby_streaming_delay = -1\n");
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	SELECT posterior.load_model('classes', '$models/classes_rows.safetensors');
	ALTER DATABASE postgres SET posterior.class_model = 'classes';
	SET posterior.class_model = 'classes';
	CREATE TABLE t (k int PRIMARY KEY, x float8, label text);
	INSERT INTO t SELECT i, sin(i), (ARRAY['low', 'high'])[1 + i % 2] FROM generate_series(1, 20) i;
	SELECT posterior.create_context('c', 't', 'label', '{x}', 'k');
	CREATE FUNCTION same() RETURNS text STABLE LANGUAGE sql AS \$\$
		SELECT n || CASE WHEN frame OPERATOR(posterior.=) posterior.predict('c', q) THEN ' same: '
			ELSE ' differ: ' END
			|| (SELECT string_agg(label, ' ')
					FROM posterior.probabilities(posterior.predict('c', q)))
		FROM (SELECT 0.5::float8 AS x) q, (SELECT count(*) AS n FROM t) c,
			(SELECT d AS frame FROM (SELECT k, posterior.classify(label, x)
			OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d
				FROM (SELECT * FROM t UNION ALL SELECT 1000000, 0.5, NULL) u) w
				WHERE k = 1000000) f \$\$;
	CREATE TABLE kept AS SELECT posterior.class_context(label, x ORDER BY k) AS ctx FROM t;
});

is(same($node), '20 same: high low', 'right in the first session');
my $skips = counter($node, 'skips');
is(same($node), '20 same: high low', 'right in the second');
cmp_ok(counter($node, 'skips'), '>', $skips, 'with labels and all, without reading the table');
$node->safe_psql('postgres', q{INSERT INTO t VALUES (21, 0.1, 'low')});
is(same($node), '21 same: high low', 'right after a row of another session');
cmp_ok(counter($node, 'deltas'), '>', 0, 'by reading that row only');
my ($deltas, $rebuilds) = (counter($node, 'deltas'), counter($node, 'rebuilds'));
$node->safe_psql('postgres', q{INSERT INTO t VALUES (22, 0.1, 'large')});
is(same($node), '22 same: high large low', 'right after a row with a label between the others');
is(counter($node, 'deltas'), $deltas, 'which is no row that simply comes last');
cmp_ok(counter($node, 'rebuilds'), '>', $rebuilds, 'but has all encoded again');
$node->safe_psql('postgres', q{INSERT INTO t VALUES (23, 0.2, 'large')});
is(same($node), '23 same: high large low', 'right after another one');
cmp_ok(counter($node, 'deltas'), '>', $deltas, 'which simply comes last');

# A transaction that sees its own label, and one that does not.
my $seen = $node->safe_psql('postgres', q{BEGIN; INSERT INTO t VALUES (24, 0, 'all'); SELECT same();
			ROLLBACK; SELECT same()});
is($seen, "24 same: all high large low\n23 same: high large low",
	'own rows are seen, rolled back ones are not');

# Labels that are too long for a proof.
$node->safe_psql('postgres', q{UPDATE t SET label = label || repeat('!', 300) WHERE label = 'low';
	UPDATE t SET label = label || repeat('?', 300) WHERE label = 'high'});
$skips = counter($node, 'skips');
like(same($node), qr/^23 same: high\?{300} large low!{300}$/, 'long labels');
like(same($node), qr/^23 same: high\?{300} large low!{300}$/, 'long labels, once more');
is(counter($node, 'skips'), $skips, 'are read each time');
$node->safe_psql('postgres', q{UPDATE t SET label = rtrim(label, '!?')});

# A standby and a dump.
my $question = q{SELECT posterior.predict(ctx, 0.7), posterior.labels(ctx) FROM kept};
my ($answer, $sight) = ($node->safe_psql('postgres', $question), same($node));
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', $question), $answer, 'a value on a standby');
is($standby->safe_psql('postgres', 'SELECT same()'), $sight, 'a named context on a standby');
$standby->stop;
my $dump = $node->data_dir . '/../dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->safe_psql('postgres', q{ALTER DATABASE copy SET posterior.class_model = 'classes'});
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d',
	$node->connstr('copy') ], 'restore');
is($node->safe_psql('copy', $question), $answer, 'a restored value');
is(same($node, 'copy'), $sight, 'a restored named context');
$node->stop;
done_testing();
