# Xids wrap around: a snapshot from before, transactions that ended since, and one that was prepared
# before and ends after. The writer log has 64-bit xids, computed from the 32-bit ones of a
# snapshot.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Same;
use Session;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('wraparound');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.maintenance_delay = -1
	max_prepared_transactions = 10
	autovacuum = off
});
# To the last xids of the first epoch, in steps that are not too long for any row.
$node->start;
$node->safe_psql('postgres', 'ALTER DATABASE template0 ALLOW_CONNECTIONS true');
for my $xid (1500000000, 2900000000, 4294967296 - 200)
{
	$node->safe_psql($_, 'VACUUM FREEZE') for 'postgres', 'template0', 'template1';
	$node->stop;
	command_ok([ 'pg_resetwal', '-x', $xid, '-D', $node->data_dir ],
		"the next transaction is $xid");
	# A file of the commit log, which pg_resetwal leaves to its user.
	my $file = sprintf '%s/pg_xact/%04X', $node->data_dir, $xid / 1048576;
	open my $log, '>', $file or die $!;
	print $log "\0" x 262144;
	close $log;
	chmod 0600, $file;
	$node->start;
}
$node->safe_psql('postgres', value_setup() . value_rows() . qq{
	CREATE PROCEDURE spend(until xid8) LANGUAGE plpgsql AS \$\$
	BEGIN
		WHILE pg_current_xact_id() < until LOOP
			COMMIT;
		END LOOP;
	END \$\$;
});

is(same($node), '30 same', 'before the end of the numbers');
$node->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
is(same($node), '30 same', 'and proven');
$node->safe_psql('postgres', "BEGIN; INSERT INTO t (k, x, y)
	VALUES (40, 1, 1); PREPARE TRANSACTION 'before'");
my $writer = session($node);
ask($writer, 'BEGIN; INSERT INTO t (k, x, y) VALUES (41, 1, 1); UPDATE t SET y = 7 WHERE k = 3');
$node->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
my $old = session($node);
is(ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM other'), '2',
		'a snapshot with two transactions under way');
is(same($node), '30 same', 'which no snapshot shows');
my $next = $node->safe_psql('postgres', "CALL spend('4294967310'); SELECT pg_current_xact_id()");
cmp_ok($next, '>', 4294967296, 'the numbers begin anew');
is(same($node), '30 same', 'with both still under way') for 1 .. 2;
my $across = session($node);
is(ask($across, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM other'), '2',
		'a snapshot that has numbers of both kinds');
$node->safe_psql('postgres', 'INSERT INTO t (k, x, y) VALUES (42, 1, 1)');
is(same($node), '31 same', 'a new row');
is(ask($writer, 'COMMIT'), '', 'one from before commits');
is(same($node), '32 same', 'and is seen') for 1 .. 2;
is(ask($across, 'SELECT same()'), '30 same', 'not by a snapshot from then');
is(same($node), '32 same', 'in turn');
is(ask($old, 'SELECT same()'), '30 same', 'nor by the oldest one');
$node->safe_psql('postgres', "COMMIT PREPARED 'before'");
is(same($node), '33 same', 'the other commits') for 1 .. 2;
is(ask($_, 'SELECT same()'), '30 same', 'and is not seen by an old snapshot') for $across, $old;
is(same($node), '33 same', 'in turn');
for my $s ($writer, $old, $across)
{
	is(ask($s, 'COMMIT; SELECT same()'), '33 same', 'by each of them in the end') if $s != $writer;
	leave($s);
}
$node->stop;
done_testing();
