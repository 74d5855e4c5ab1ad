# Dumps carry loaded models and values; a preloaded library works as well; a standby gives the
# primary's answers.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $models = $ENV{TEST_MODELS};
my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_posterior'\n");
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	SELECT posterior.load_model('mine', '$models/prefix_causal.safetensors');
	ALTER DATABASE postgres SET posterior.model = 'mine';
	CREATE TABLE t AS SELECT i * 0.1 AS x, sin(i) AS y FROM generate_series(1, 40) i;
	CREATE TABLE kept AS SELECT posterior.context(y, x) AS ctx,
		posterior.predict(posterior.context(y, x), 0.3) AS d FROM t;
});
my $question = q{SELECT posterior.predict(ctx, 0.7), d, posterior.rows(ctx) FROM kept};
my $answer = $node->safe_psql('postgres', $question);
like($answer, qr/^mixture/, 'the primary answers, preloaded');

# The standby, from the same rows.
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', $question), $answer, 'the standby answers the same');
is($standby->safe_psql('postgres',
			q{SELECT round(posterior.mean(posterior.regress(y, x)
			OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))::numeric, 9) FROM t
	ORDER BY x DESC LIMIT 1}),
	$node->safe_psql('postgres',
			q{SELECT round(posterior.mean(posterior.regress(y, x)
				OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))::numeric, 9)
		FROM t ORDER BY x DESC LIMIT 1}),
	'frames as well');
my ($status, $out, $err) = $standby->psql('postgres', "SELECT posterior.drop_model('mine')");
like($err, qr/read-only transaction/, 'a standby loads and drops nothing');
$standby->promote;
is($standby->safe_psql('postgres', $question), $answer, 'and again after promotion');
$standby->stop;

# Dump and restore into another database of the same server.
my $dump = $node->data_dir . '/../dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d',
	$node->connstr('copy') ], 'restore');
is($node->safe_psql('copy', "SET posterior.model = 'mine'; $question"), $answer,
	'the copy answers the same');
is($node->safe_psql('copy', 'SELECT count(*), count(DISTINCT name) FROM posterior.models'),
	$node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT name) FROM posterior.models'),
		'no model is there twice');
is($node->safe_psql('copy', 'SELECT version FROM posterior.model_file WHERE name = \'mine\''),
	$node->safe_psql('postgres', 'SELECT version FROM posterior.model_file WHERE name = \'mine\''),
		'the loaded model is the same one');

# Dropping the extension drops all its objects, without obstacles.
$node->safe_psql('copy', 'DROP TABLE kept; DROP EXTENSION pg_posterior');
is($node->safe_psql('copy', q{SELECT count(*) FROM pg_class
			WHERE relnamespace = to_regnamespace('posterior')}), '0',
	'DROP EXTENSION leaves nothing');
$node->safe_psql('copy', 'CREATE EXTENSION pg_posterior');
$node->stop;
done_testing();
