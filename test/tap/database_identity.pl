# A database's OID says nothing about its rows: proofs of a dropped database must not hold for the
# next one with its OID, from the same template, with the same tables and contexts. A database that
# is renamed, moved or restored answers from its own rows.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use File::Path qw(rmtree);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;
use Unused;

my $models = $ENV{TEST_MODELS};
my $node = PostgreSQL::Test::Cluster->new('databases');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = -1
	autovacuum = off
});
$node->start;
plan skip_all => 'CREATE DATABASE takes no OID' if $node->pg_version < 15;

$node->safe_psql('postgres', 'CREATE EXTENSION pg_posterior; CREATE DATABASE kept');
$node->safe_psql('kept', qq{
	CREATE EXTENSION pg_posterior;
	SELECT posterior.load_model('causal', '$models/packed_causal.safetensors');
	CREATE TABLE t (k int PRIMARY KEY, x float8, y float8);
	INSERT INTO t SELECT i, i / 10.0, sin(i) FROM generate_series(1, 20) i;
	SELECT posterior.create_context('c', 't', 'y', features => '{x,k}', order_by => 'k',
			model => 'causal');
	CREATE FUNCTION same() RETURNS text STABLE
		LANGUAGE plpgsql SET posterior.model = 'causal' AS \$\$
	DECLARE
		n bigint;
		value posterior.context;
	BEGIN
		SELECT posterior.context(y, x, k ORDER BY k), count(*) INTO value, n FROM t;
		RETURN n || CASE WHEN posterior.predict(value, 0.5::float8, 50) OPERATOR(posterior.=)
			(SELECT posterior.predict('c', q) FROM (SELECT 0.5::float8 AS x, 50 AS k) q)
				THEN ' same' ELSE ' differ' END;
	END \$\$;
});
# The rows are in the files, and everything is frozen: copies begin alike.
$node->safe_psql('kept', 'VACUUM (FREEZE)');

my $created = 'CREATE DATABASE again TEMPLATE kept OID = 60001';
my $counters = q{SELECT skips + deltas + reads + extensions + rebuilds + private
		FROM posterior.stat_contexts};
sub entries
{
	return $node->safe_psql('postgres', 'SELECT entries, bytes FROM posterior.stat_cache()');
}

# Rows of its own for this database life, and a proof about them that has been used; returns the
# number of rows.
my $lives = 0;
sub live
{
	my ($database) = @_;
	my $rows = 20 + 2 * ++$lives;
	is($node->safe_psql($database, 'SELECT same()'), '20 same',
			"life $lives: the rows of the template");
	$node->safe_psql($database, "INSERT INTO t SELECT i, i / 7.0, cos($lives * i)
				FROM generate_series(21, $rows) i");
	$node->safe_psql($database, 'SELECT pg_current_xact_id()');
	is($node->safe_psql($database, 'SELECT same()'), "$rows same", "life $lives: rows of its own")
		for 1 .. 3;
	is($node->safe_psql($database, 'SELECT skips > 0 FROM posterior.stat_contexts'), 't',
			"life $lives: a proof is used");
	return $rows;
}

# ---- dropped and created again ----
my $empty = entries();
once_unused($node, $created);
live('again');
isnt(entries(), $empty, 'something is kept of it');
once_unused($node, 'DROP DATABASE again');
is(entries(), $empty, 'after the drop nothing is');
once_unused($node, $created);
is($node->safe_psql('again', $counters), '0',
	'counters of the dropped one are not those of the next');
live('again');

# Sessions that predict until they are ended; the drop has begun to forget by then.
my @sessions = map { session($node, 'again') } 1 .. 3;
is(ask($_, 'SELECT same()'), '24 same', 'a session is connected') for @sessions;
once_unused($node, 'DROP DATABASE again WITH (FORCE)');
is(entries(), $empty, 'after DROP DATABASE WITH (FORCE) nothing is kept');
$_->{run}->kill_kill for @sessions;
once_unused($node, $created);
live('again');

# A drop that fails forgets nothing that is needed.
my $stays = session($node, 'again');
is(ask($stays, 'SELECT same()'), '26 same', 'a session is connected');
my ($status, $out, $err) = $node->psql('postgres', 'DROP DATABASE again');
like($err, qr/is being accessed by other users/, 'it cannot be dropped');
$node->safe_psql('again', 'DELETE FROM t WHERE k = 21');
is(ask($stays, 'SELECT same()'), '25 same', 'the session sees what another one writes');

# ---- sessions from before and after a change of the row in pg_database agree ----
$node->safe_psql('postgres', 'CREATE ROLE another; ALTER DATABASE again OWNER TO another');
my $later = session($node, 'again');
my $n = 25;
for my $pair ([ $stays, $later ], [ $later, $stays ])
{
	my ($writes, $reads) = @$pair;
	for my $statement ("INSERT INTO t VALUES (100 + $n, 0.1, 3)",
		'UPDATE t SET y = y + 1 WHERE k = 3')
	{
		is(ask($reads, 'SELECT same()'), "$n same", 'before') for 1 .. 2;
		ask($writes, $statement);
		$n++ if $statement =~ /INSERT/;
		is(ask($reads, 'SELECT same()'), "$n same", "a change is seen: $statement");
	}
}
leave($_) for $stays, $later;

# ---- another name, another place ----
once_unused($node, 'ALTER DATABASE again RENAME TO renamed');
is($node->safe_psql('renamed', 'SELECT same()'), "$n same", 'renamed') for 1 .. 2;
$node->safe_psql('renamed', 'DELETE FROM t WHERE k = 5');
$n--;
is($node->safe_psql('renamed', 'SELECT same()'), "$n same", 'and written') for 1 .. 2;
$node->safe_psql('postgres',
		"SET allow_in_place_tablespaces = on; CREATE TABLESPACE elsewhere LOCATION ''");
once_unused($node, 'ALTER DATABASE renamed SET TABLESPACE elsewhere');
is($node->safe_psql('renamed', 'SELECT same()'), "$n same", 'in another tablespace') for 1 .. 2;
$node->safe_psql('renamed', 'DELETE FROM t WHERE k = 6');
$n--;
is($node->safe_psql('renamed', 'SELECT same()'), "$n same", 'and written there') for 1 .. 2;
once_unused($node, 'ALTER DATABASE renamed SET TABLESPACE pg_default');
is($node->safe_psql('renamed', 'SELECT same()'), "$n same", 'and back') for 1 .. 2;
# The names are swapped: the OIDs stay with the rows.
once_unused($node, 'CREATE DATABASE other TEMPLATE kept');
is($node->safe_psql('other', 'SELECT same()'), '20 same', 'another database of the template');
once_unused($node, $_) for 'ALTER DATABASE other RENAME TO third',
	'ALTER DATABASE renamed RENAME TO other', 'ALTER DATABASE third RENAME TO renamed';
is($node->safe_psql('other', 'SELECT same()') . $node->safe_psql('renamed', 'SELECT same()'),
		"$n same20 same", 'names are exchanged') for 1 .. 2;
once_unused($node, 'DROP DATABASE renamed');
once_unused($node, 'DROP DATABASE other');
$node->safe_psql('postgres', 'DROP TABLESPACE elsewhere');

# ---- a standby, where no hook sees the drop ----
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
sub catch_up { $node->wait_for_catchup($standby, 'replay', $node->lsn('insert')); return }
for my $drop ('DROP DATABASE again', 'DROP DATABASE again WITH (FORCE)')
{
	once_unused($node, $created);
	my $rows = live('again');
	catch_up();
	is($standby->safe_psql('again', 'SELECT same()'), "$rows same", 'on the standby') for 1 .. 2;
	is($standby->safe_psql('again', "$counters"), '2', 'and counted');
	# Replay ends the session.
	my $reader = session($standby, 'again');
	is(ask($reader, 'SELECT same()'), "$rows same", 'a session of the standby');
	once_unused($node, $drop);
	catch_up();
	$reader->{run}->kill_kill;
	once_unused($node, $created);
	catch_up();
	is($standby->safe_psql('again', $counters), '0',
		"a standby knows nothing of the one before: $drop");
	is($standby->safe_psql('again', 'SELECT same()'), '20 same', 'and answers from the next one')
		for 1 .. 2;
	once_unused($node, 'DROP DATABASE again');
}
$standby->stop;

# ---- a restart empties the cache: also in a cluster whose files were exchanged ----
once_unused($node, $created);
my $rows = live('again');
$node->safe_psql('postgres', 'CHECKPOINT');
$node->backup('before');
$node->safe_psql('again', 'UPDATE t SET y = -y');
is($node->safe_psql('again', 'SELECT same()'), "$rows same", 'other rows') for 1 .. 2;
$node->stop;
rmtree($node->data_dir);
PostgreSQL::Test::RecursiveCopy::copypath($node->backup_dir . '/before', $node->data_dir);
chmod(0700, $node->data_dir) or die "the data directory: $!";
$node->start;
is(entries() =~ s/\|.*//r, '0', 'after the restart nothing is kept');
is($node->safe_psql('again', $counters), '0', 'nothing is counted');
is($node->safe_psql('again', 'SELECT same()'), "$rows same", 'and the rows of the backup answer')
	for 1 .. 2;
$node->stop;
done_testing();
