# What other sessions see of one that encodes rows of no named context: the wait event in
# pg_stat_activity, rows in stat_progress that move, and neither after a cancel, whether the
# transaction ends or catches the error. Roles without rights on the encoding one see no progress.
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

my $node = PostgreSQL::Test::Cluster->new('encoding_seen');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.model = 'tabular_small'
	posterior.threads = 1
	posterior.row_limit = 0
	jit = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE c AS SELECT posterior.context(sin(i * 0.1), i * 0.1, cos(i * 0.3)) AS ctx
		FROM generate_series(1, 30000) i;
	CREATE ROLE analyst; CREATE ROLE colleague; CREATE ROLE monitor;
	GRANT pg_read_all_stats TO monitor;
	GRANT SELECT ON c TO analyst;
	CREATE FUNCTION encode_and_catch() RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM posterior.predict(ctx, 1, 2) FROM c;
		RETURN 'done';
	EXCEPTION WHEN query_canceled THEN
		RETURN 'caught';
	END $$});

my $event = $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000
	? 'PosteriorEncode' : 'Extension';

# A session of the analyst begins to encode, for longer than the test takes.
sub encoding
{
	my ($statement) = @_;
	my $s = session($node);
	ask($s, 'SET ROLE analyst');
	$s->{pid} = ask($s, 'SELECT pg_backend_pid()');
	$s->{out} = '';
	$s->{in} .= "$statement;\n\\echo end\n";
	$s->{run}->pump_nb while length $s->{in};
	return $s;
}

sub progress
{
	my ($pid, $role) = @_;
	return $node->safe_psql('postgres', "SET ROLE $role;
		SELECT phase, total, name IS NULL FROM posterior.stat_progress WHERE pid = $pid");
}

for my $case (
	[ 'a value', 'SELECT posterior.predict(ctx, 1, 2) FROM c',
		'canceling statement due to user request' ],
	[ 'an error that is caught', 'BEGIN; SELECT encode_and_catch()', 'caught' ])
{
	my ($name, $statement, $answer) = @$case;
	my $s = encoding($statement);
	my $pid = $s->{pid};

	ok($node->poll_query_until('postgres', qq{
			SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid
				AND (wait_event_type, wait_event) = ('Extension', '$event'))}),
		"$name: the wait event is shown");
	ok($node->poll_query_until('postgres', qq{
			SELECT EXISTS (SELECT FROM posterior.stat_progress WHERE pid = $pid AND done > 0)}),
		"$name: some rows are done");
	my $done = $node->safe_psql('postgres',
		"SELECT done FROM posterior.stat_progress WHERE pid = $pid");
	ok($node->poll_query_until('postgres', qq{
			SELECT EXISTS (SELECT FROM posterior.stat_progress WHERE pid = $pid AND done > $done)}),
		"$name: and then more");
	# it stays where it is while others look
	kill('STOP', $pid);
	is(progress($pid, 'analyst'), 'encoding prefix|30000|t', "$name: the role sees itself");
	is(progress($pid, 'monitor'), 'encoding prefix|30000|t', "$name: monitors see it");
	is(progress($pid, 'colleague'), '', "$name: others do not");
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	kill('CONT', $pid);
	ok($node->poll_query_until('postgres', qq{
			SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid
				AND state LIKE 'idle%' AND wait_event = 'ClientRead')}),
		"$name: after a cancel it waits for its client");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM posterior.stat_progress'), '0',
		"$name: and shows no progress");
	$s->{run}->pump until $s->{out} =~ /^end$/m;
	like($s->{out}, qr/\Q$answer\E/, "$name: what the session got");
	leave($s);
}

$node->stop;
done_testing();
