# Transactions' numbers begin anew: a snapshot from before, transactions that ended since, and one that was prepared before and ends after. The ring has full numbers,
# which it has to make from those of a snapshot.
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
my $node = PostgreSQL::Test::Cluster->new('wraparound');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_posterior'\nposterior.maintenance_delay = -1\nmax_prepared_transactions = 10\nautovacuum = off\n");
# to the last numbers of the first round, in steps that no row is too old for
$node->start;
$node->safe_psql('postgres', 'ALTER DATABASE template0 ALLOW_CONNECTIONS true');
for my $xid (1500000000, 2900000000, 4294967296 - 200)
{
	$node->safe_psql($_, 'VACUUM FREEZE') for 'postgres', 'template0', 'template1';
	$node->stop;
	command_ok([ 'pg_resetwal', '-x', $xid, '-D', $node->data_dir ], "the next transaction is $xid");
	# what pg_resetwal leaves to its user
	my $file = sprintf '%s/pg_xact/%04X', $node->data_dir, $xid / 1048576;
	open my $log, '>', $file or die $!;
	print $log "\0" x 262144;
	close $log;
	chmod 0600, $file;
	$node->start;
}
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	SELECT posterior.load_model('causal', '$models/packed_causal.safetensors');
	CREATE TABLE t (k int PRIMARY KEY, x float8, z int NOT NULL DEFAULT 1, y float8);
	CREATE TABLE other (i int);
	INSERT INTO t (k, x, y) SELECT i, i / 10.0, sin(i) FROM generate_series(1, 30) i;
	SELECT posterior.create_context('c', 't', 'y', features => '{x,z}', order_by => 'k', model => 'causal');
	CREATE FUNCTION same() RETURNS text STABLE LANGUAGE sql SET posterior.model = 'causal' AS \$\$
		WITH s AS MATERIALIZED (SELECT posterior.context(y, x, z ORDER BY k) AS value, count(*) AS n FROM t)
		SELECT n || CASE WHEN posterior.predict(value, 0.5::float8, 2) OPERATOR(posterior.=)
			(SELECT posterior.predict('c', q) FROM (SELECT 0.5::float8 AS x, 2 AS z) q) THEN ' same' ELSE ' differ' END FROM s \$\$;
	CREATE PROCEDURE spend(until xid8) LANGUAGE plpgsql AS \$\$
	BEGIN
		WHILE pg_current_xact_id() < until LOOP
			COMMIT;
		END LOOP;
	END \$\$;
});
sub same { return $node->safe_psql('postgres', 'SELECT same()') }

is(same(), '30 same', 'before the end of the numbers');
$node->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
is(same(), '30 same', 'and proven');
$node->safe_psql('postgres', "BEGIN; INSERT INTO t (k, x, y) VALUES (40, 1, 1); PREPARE TRANSACTION 'before'");
my $writer = session($node);
ask($writer, 'BEGIN; INSERT INTO t (k, x, y) VALUES (41, 1, 1); UPDATE t SET y = 7 WHERE k = 3');
$node->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
my $old = session($node);
is(ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM other'), '2', 'a snapshot with two transactions under way');
is(same(), '30 same', 'which nobody sees');
my $next = $node->safe_psql('postgres', "CALL spend('4294967310'); SELECT pg_current_xact_id()");
cmp_ok($next, '>', 4294967296, 'the numbers begin anew');
is(same(), '30 same', 'with both still under way') for 1 .. 2;
my $across = session($node);
is(ask($across, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM other'), '2', 'a snapshot that has numbers of both kinds');
$node->safe_psql('postgres', 'INSERT INTO t (k, x, y) VALUES (42, 1, 1)');
is(same(), '31 same', 'a new row');
is(ask($writer, 'COMMIT'), '', 'one from before commits');
is(same(), '32 same', 'and is seen') for 1 .. 2;
is(ask($across, 'SELECT same()'), '30 same', 'not by a snapshot from then');
is(same(), '32 same', 'in turn');
is(ask($old, 'SELECT same()'), '30 same', 'nor by the oldest one');
$node->safe_psql('postgres', "COMMIT PREPARED 'before'");
is(same(), '33 same', 'the other commits') for 1 .. 2;
is(ask($_, 'SELECT same()'), '30 same', 'and is not seen by an old snapshot') for $across, $old;
is(same(), '33 same', 'in turn');
for my $s ($writer, $old, $across)
{
	is(ask($s, 'COMMIT; SELECT same()'), '33 same', 'by each of them in the end') if $s != $writer;
	leave($s);
}
$node->stop;
done_testing();
