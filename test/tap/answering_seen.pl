# What other sessions see in stat_progress of one that answers about many rows: its phase, rows that
# move up to those asked about, and nothing after a cancel. A question about one row is not shown.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use StopPhase;
use Test::More;

my $node = encoding_node('answering_seen', q{
	posterior.model = 'tabular_small'
	posterior.row_limit = 0
	posterior.joint_limit = -1
	jit = off
});
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT i, sin(i * 0.1) AS y, i * 0.1 AS x FROM generate_series(1, 200) i;
	SELECT posterior.create_context('known', 't', 'y', ARRAY['x']);
	CREATE TABLE c AS SELECT posterior.context(y, x) AS ctx FROM t;
	CREATE TABLE many AS SELECT i * 0.01 AS x, 0.5 AS y FROM generate_series(1, 100000) i;
});

my $rows = '(SELECT array_agg(x) FROM many)';
for my $case (
	[ 'predictions of an array', 'answering questions', 100000, '',
		"SELECT count(*) FROM c, posterior.predict_rows(ctx, $rows)" ],
	[ 'predictions for a named context', 'answering questions', 100000, 'known',
		"SELECT count(*) FROM posterior.predict_rows('known',
			(SELECT array_agg(many) FROM many))" ],
	[ 'summaries', 'answering questions', 100000, '',
		"SELECT count(*) FROM c, posterior.predict_summary(ctx, $rows, ARRAY[0.5])" ],
	[ 'draws', 'drawing', 20 * 1000, '',
		"SELECT count(*) FROM c, posterior.sample(ctx, (SELECT array_agg(x) FROM
			(SELECT x FROM many LIMIT 20) m), 1000, 1)" ],
	[ 'a density of many orders', 'scoring', 20 * 1000, '',
		'SELECT posterior.log_density_averaged(ctx, 1000, 1, y, x) FROM c,
			(SELECT * FROM many LIMIT 20) m' ])
{
	my ($name, $phase, $total, $context, $statement) = @$case;
	my $s = session($node);
	my $pid = ask($s, 'SELECT pg_backend_pid()');
	$s->{out} = '';
	$s->{in} .= "$statement;\n\\echo end\n";
	$s->{run}->pump_nb while length $s->{in};
	my $shown = "FROM posterior.stat_progress WHERE pid = $pid AND phase = '$phase'";

	ok($node->poll_query_until('postgres', "SELECT EXISTS (SELECT $shown AND done > 0)"),
		"$name: some rows are done");
	my $done = $node->safe_psql('postgres', "SELECT done $shown");
	ok($node->poll_query_until('postgres', "SELECT EXISTS (SELECT $shown AND done > $done)"),
		"$name: and then more");
	is($node->safe_psql('postgres', "SELECT total, name, done < total $shown"),
		"$total|$context|t", "$name: of all");
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	$s->{run}->pump until $s->{out} =~ /^end$/m;
	like($s->{out}, qr/canceling statement due to user request/, "$name: a cancel ends it");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM posterior.stat_progress'), '0',
		"$name: and nothing is shown any more");
	leave($s);
}

$node->stop;
done_testing();
