# Contexts and tables of another server, through postgres_fdw: a local context of remote rows, and
# predictions computed there for a view. Each statement answers from the rows that it would read.
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

my ($here, $there) = map { PostgreSQL::Test::Cluster->new($_) } 'here', 'there';
for my $node ($here, $there)
{
	$node->init;
	$node->append_conf('postgresql.conf', q{
		shared_preload_libraries = 'pg_posterior'
		posterior.device = cpu
		posterior.maintenance_delay = -1
	});
	$node->start;
}
if ($here->safe_psql('postgres',
			q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'}) eq '0')
{
	plan skip_all => 'no postgres_fdw here';
}
$there->safe_psql('postgres', same_setup() . q{
	CREATE VIEW asked AS SELECT q.x, posterior.predict('c', q) AS p
		FROM (VALUES (0.5::float8), (2.5)) q (x)});
my ($host, $port) = ($there->host, $there->port);
my $user = $there->safe_psql('postgres', 'SELECT current_user');
$here->safe_psql('postgres', qq{
	CREATE EXTENSION pg_posterior;
	CREATE EXTENSION postgres_fdw;
	CREATE SERVER there FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port',
			dbname 'postgres');
	CREATE USER MAPPING FOR CURRENT_USER SERVER there OPTIONS (user '$user');
	IMPORT FOREIGN SCHEMA public LIMIT TO (t, asked) FROM SERVER there INTO public;
	SELECT posterior.create_context('c', 't', 'y', features => '{x}', order_by => 'k',
			model => 'tabular_small', maintain => 'read');
} . same_function());
my $asked = 'SELECT x, p FROM asked ORDER BY x';
my $rows = q{SELECT rows FROM posterior.stat_contexts WHERE name = 'c'};

sub both
{
	my ($n, $name) = @_;
	is(same($here), "$n same", "$name: a context here");
	is($here->safe_psql('postgres', $asked),
		$there->safe_psql('postgres', "SET posterior.cache = off; $asked"),
		"$name: predictions from there");
	is($there->safe_psql('postgres', $rows), $n, "$name: of $n rows");
}

both(40, 'at first');
both(40, 'again');
$there->safe_psql('postgres', same_rows(41, 41));
both(41, 'a row written there');
$here->safe_psql('postgres', same_rows(42, 42));
both(42, 'a row written from here');

# The remote transaction is as long as the local one, and has one snapshot.
my $s = session($here);
my $before = ask($s, "BEGIN; $asked");
is(ask($s, 'SELECT same()'), '42 same', 'in a transaction');
$there->safe_psql('postgres', same_rows(43, 45));
is(ask($s, $asked), $before, 'its predictions do not see the rows of others');
is(ask($s, 'SELECT same()'), '42 same', 'nor does the context here');
is($there->safe_psql('postgres', 'SELECT same()'), '45 same', 'others do');
ask($s, same_rows(50, 51) =~ s/;$//r);
is(ask($s, 'SELECT same()'), '44 same', 'its own rows it sees');
isnt(ask($s, $asked), $before, 'in both ways');
is($there->safe_psql('postgres', 'SELECT same()'), '45 same', 'other sessions do not see it');
ask($s, 'ROLLBACK');
leave($s);
both(45, 'rolled back');

# Predictions that are stored as they come.
$here->safe_psql('postgres', 'CREATE TABLE kept AS TABLE asked');
is($here->safe_psql('postgres', 'SELECT x, p FROM kept ORDER BY x'),
		$here->safe_psql('postgres', $asked), 'values travel unchanged');

# Calls about rows of foreign scans are answered in blocks, and an Append that asks for several of
# them ahead of time gets the same rows.
$here->safe_psql('postgres', q{
	ALTER SERVER there OPTIONS (ADD async_capable 'true');
	CREATE SCHEMA other;
	IMPORT FOREIGN SCHEMA public LIMIT TO (t) FROM SERVER there INTO other});
my $calls = q{SELECT k, posterior.mean(posterior.predict('c', t)) FROM t WHERE k %% 3 > 0
	UNION ALL SELECT -k, posterior.mean(posterior.predict('c', u)) FROM other.t u %s};
my $filter = q{WHERE posterior.mean(posterior.predict('c', u)) > 0};
for my $calls (map { sprintf $calls, $_ } '', $filter)
{
	my $plan = $here->safe_psql('postgres', "EXPLAIN (COSTS OFF) $calls");
	is(() = $plan =~ /Posterior Batch.*\n(?:.*Filter.*\n)?.*Foreign Scan/g, 2,
		'foreign scans below batches');
	is($here->safe_psql('postgres', "$calls ORDER BY 1"),
		$here->safe_psql('postgres', "SET posterior.batch_calls = off; $calls ORDER BY 1"),
		'the answers are those of single calls');
}
my $join = q{SELECT t.k, posterior.mean(posterior.predict('c', t.*)) FROM t
	JOIN other.t u USING (k) ORDER BY t.k};
is($here->safe_psql('postgres', $join),
	$here->safe_psql('postgres', "SET posterior.batch_calls = off; $join"),
	'a join that is computed there');

# Another local context of the same rows, while the connection breaks.
$s = session($here);
is(ask($s, 'SELECT same()'), '45 same', 'a session with a connection');
$there->restart;
$there->safe_psql('postgres', same_rows(46, 46));
is(ask($s, 'SELECT same()'), '46 same', 'the other server was restarted');
leave($s);
both(46, 'afterwards');
$there->stop;
my ($status, undef, $err) = $here->psql('postgres', "\\set VERBOSITY verbose\nSELECT same()");
like($err, qr/ERROR:  08001/, 'without the other server the error is its own');
$here->stop;

done_testing();
