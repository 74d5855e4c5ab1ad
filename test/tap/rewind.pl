# pg_rewind: a primary that went on after its standby was promoted becomes a standby of that one.
# None of its encodings, from before or after, answers for rows that the rewinding removed.
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

my $old = PostgreSQL::Test::Cluster->new('old');
$old->init(allows_streaming => 1);
$old->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = 10
	wal_log_hints = on
	wal_keep_size = '64MB'
});
$old->start;
$old->safe_psql('postgres', same_setup());
$old->backup('copy');
my $new = PostgreSQL::Test::Cluster->new('new');
$new->init_from_backup($old, 'copy', has_streaming => 1);
$new->start;
$old->safe_psql('postgres', same_rows(41, 45));
$old->wait_for_catchup($new, 'replay', $old->lsn('insert'));
is(same($_), '45 same', 'the primary and its standby') for $old, $new;

# From here on they differ: other rows under the same keys, by transactions with the same xids.
$new->promote;
$new->safe_psql('postgres', 'CHECKPOINT');
$old->safe_psql('postgres', same_rows(46, 60));
$old->safe_psql('postgres', 'UPDATE t SET y = -5 WHERE k <= 10');
$new->safe_psql('postgres', 'INSERT INTO t SELECT i, i * 0.1, cos(i * 0.1)
			FROM generate_series(46, 52) i');
is(same($old), '60 same', 'the old primary goes on') for 1 .. 2;
is(same($new), '52 same', 'so does the new one') for 1 .. 2;
$old->safe_psql('postgres', q{SELECT posterior.warm_context('c')});
$old->stop('fast');

my $conf = $old->data_dir . '/postgresql.conf';
my $kept = slurp_file($conf);
command_ok([ 'pg_rewind', '--target-pgdata', $old->data_dir, '--source-server',
	$new->connstr('postgres'), '--no-sync' ], 'pg_rewind');
open(my $file, '>', $conf) or die;
print $file $kept;
close($file);
$old->append_conf('postgresql.conf', "primary_conninfo = '" . $new->connstr . "'");
$old->set_standby_mode;
$old->start;
ok($old->poll_query_until('postgres', 'SELECT count(*) = 52 FROM t'),
		'the old primary follows the new one');
is(same($old), '52 same', 'and answers from its rows') for 1 .. 2;
my $question = q{SELECT posterior.predict('c', q) FROM (SELECT 0.5::float8 AS x) q};
is($old->safe_psql('postgres', $question), $new->safe_psql('postgres', $question),
	'as the new one does');
$new->safe_psql('postgres', same_rows(53, 55));
ok($old->poll_query_until('postgres', 'SELECT count(*) = 55 FROM t'), 'and goes on following');
is(same($old), '55 same', 'with its answers') for 1 .. 2;
$new->stop;
$old->promote;
$old->safe_psql('postgres', same_rows(56, 56));
is(same($old), '56 same', 'promoted in turn') for 1 .. 2;
$old->stop;

done_testing();
