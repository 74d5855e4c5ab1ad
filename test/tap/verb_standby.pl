# Every verb answers on a hot standby what it answers on the primary, to the last bit; what would
# write says so.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.model = 'tabular_small'
	posterior.class_model = 'tabular_class'
	posterior.device = cpu
	TimeZone = 'UTC'
	max_standby_streaming_delay = -1
});
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE sales (id int PRIMARY KEY, day date, qty float8, kind text);
	INSERT INTO sales SELECT i, '2024-01-01'::date + i, i % 7 + i % 3,
		CASE i % 3 WHEN 0 THEN 'p' ELSE 'q' END FROM generate_series(0, 59) i;
	UPDATE sales SET kind = NULL WHERE id = 30;
	SELECT posterior.create_context('sales', 'sales', 'qty', '{id,kind}', order_by => 'id')});
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

for my $call (
	q{forecast('sales', 'day', 'qty', 3, draws => 4)}, q{forecast_total('sales', 'day', 'qty', 3)},
	q{backtest('sales', 'day', 'qty', 3, origins => 2)},
	q{evaluate('sales', 'qty', '{id,kind}', folds => 2)},
	q{detect_anomalies('sales', 'qty', '{kind}', all_rows => true)},
	q{detect_anomalies('sales', 'qty', "time" => 'day', all_rows => true)},
	q{impute('sales', draws => 3)}, q{importance('sales', 'qty', '{id,kind}')},
	q{score('sales', 'sales')}, q{suggest('sales', 'sales', 2)},
	q{contrast('sales', '{"id": 1, "kind": "p"}', '{"id": 1, "kind": "q"}')},
	q{order_gap('sales', 'sales', orders => 2, draws => 2)})
{
	my ($name) = $call =~ /^(\w+)/;
	my $question = "SELECT * FROM posterior.$call v ORDER BY v::text";
	my $answer = $primary->safe_psql('postgres', $question);
	isnt($answer, '', "$name answers");
	is($standby->safe_psql('postgres', $question), $answer, "$name on the standby");
}
my ($status, $out, $err) = $standby->psql('postgres', q{SELECT posterior.watch('sales')});
like($err, qr/read-only transaction|during recovery/, 'watch writes, and says that it cannot');

$standby->stop;
$primary->stop;
done_testing();
