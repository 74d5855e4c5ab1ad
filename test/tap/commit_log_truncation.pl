# The commit log is truncated, and a table's writer log keeps older xids: the outcome of an old
# writer must be known, or not be looked up.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $models = $ENV{TEST_MODELS};
my $node = PostgreSQL::Test::Cluster->new('old');
# The commit log has files of 2^20 transactions: begin near the end of the first.
my $last = 2**20 - 1;
$node->init;
command_ok([ 'pg_resetwal', '-x', $last - 200, '-D', $node->data_dir ],
	'the next transaction is at the end of the first file of the commit log');
truncate($node->data_dir . '/pg_xact/0000', 2**18) or die "the commit log: $!";
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.maintenance_delay = -1
	autovacuum = off
	max_prepared_transactions = 2
});
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	SELECT posterior.load_model('causal', '$models/packed_causal.safetensors');
	CREATE TABLE t (k int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, x float8,
			z int NOT NULL DEFAULT 1, y float8);
	INSERT INTO t (x, y) SELECT i / 10.0, sin(i) FROM generate_series(1, 30) i;
	CREATE TABLE u (LIKE t INCLUDING ALL);
	INSERT INTO u (x, y) SELECT x, y FROM t;
	CREATE TABLE other (i int);
	SELECT posterior.create_context('t', 't', 'y', features => '{x,z}', order_by => 'k',
			model => 'causal');
	SELECT posterior.create_context('u', 'u', 'y', features => '{x,z}', order_by => 'k',
			model => 'causal');
	CREATE FUNCTION same(name text)
		RETURNS text STABLE LANGUAGE plpgsql SET posterior.model = 'causal' AS \$\$
	DECLARE
		n bigint;
		value posterior.context;
	BEGIN
		EXECUTE format('SELECT posterior.context(y, x, z ORDER BY k), count(*) FROM %I',
				name) INTO value, n;
		RETURN n || CASE WHEN posterior.predict(value, 0.5::float8, 2) OPERATOR(posterior.=)
			(SELECT posterior.predict(name, q) FROM (SELECT 0.5::float8 AS x, 2 AS z) q)
				THEN ' same' ELSE ' differ' END;
	END \$\$;
	CREATE PROCEDURE pass(n int) LANGUAGE plpgsql AS \$\$ BEGIN FOR i IN 1 .. n
		LOOP INSERT INTO other VALUES (i); COMMIT; END LOOP; END \$\$;
	ALTER DATABASE template0 ALLOW_CONNECTIONS true;
});
# The answer, or the error.
sub same
{
	my ($status, $out, $err) = $node->psql('postgres', "SELECT same('$_[0]')");
	return $status == 0 ? $out : $err;
}
sub state
{
	return $node->safe_psql('postgres',
			"SELECT $_[1] FROM posterior.stat_contexts WHERE name = '$_[0]'");
}
# Freeze all rows, and truncate the commit log.
sub freeze
{
	$node->safe_psql($_, 'VACUUM (FREEZE)') for 'postgres', 'template1', 'template0';
	return;
}

is(same($_), '30 same', "context $_ is encoded") for 't', 'u';
# Both tables have writers: a reader has proven t's, and not u's.
for my $table ('t', 'u')
{
	$node->safe_psql('postgres',
		"INSERT INTO $table (k, x, y) OVERRIDING SYSTEM VALUE VALUES (31, 1, 2)");
	$node->psql('postgres', "BEGIN; INSERT INTO $table (k, x, y) OVERRIDING SYSTEM VALUE
				VALUES (32, 1, 2); SELECT 1 / 0");
}
is(same('t'), '31 same', 'a reader has a proof');
cmp_ok($node->safe_psql('postgres', 'SELECT txid_current()'), '<', $last, 'all in the first file');
$node->safe_psql('postgres', 'CALL pass(300)');
freeze();
ok(!-e $node->data_dir . '/pg_xact/0000', 'which is gone');

my $reads = state('t', 'reads');
is(same('t'), '31 same', 'the right answer');
is(state('t', 'reads'), $reads,
	'and nothing was read: the outcome of the writers is recorded');
is(same('u'), '31 same', 'the right answer where there was no proof');
is(same('u'), '31 same', 'again');
($reads) = (state('u', 'reads'));
$node->safe_psql('postgres', "INSERT INTO $_ (k, x, y) OVERRIDING SYSTEM VALUE VALUES (33, 1, 2)")
	for 't', 'u';
is(same($_), '32 same', "$_ goes on") for 't', 'u';
is(state('u', 'reads'), $reads, 'and is proven again');
$node->stop;
done_testing();
