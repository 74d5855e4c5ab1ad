# Named contexts that keep sums: without reading rows after whatever triggers note, also on a
# standby, after its promotion and a crash, and at a subscriber; rows are read where sums cannot be
# relied on; dumps carry the context, its basis and its fit.
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
plan skip_all => 'no test models' if !defined $models || !-e "$models/sums.safetensors";

# Whether the context has the sums of the rows that the statement sees, and answers as when these
# are read; their number.
my $setup = qq{
	CREATE EXTENSION pg_posterior;
	DO 'BEGIN PERFORM posterior.load_model(''sums'', ''$models/sums.safetensors''); END';
	ALTER DATABASE postgres SET posterior.model = 'sums';
	SET posterior.model = 'sums';
	CREATE TABLE t (k int PRIMARY KEY, x float8, c text, y float8);
	CREATE FUNCTION answer() RETURNS text STABLE LANGUAGE sql AS
		\$\$ SELECT posterior.predict('c', '{"x": 0.3, "c": "b"}'::jsonb)::text \$\$;
	CREATE FUNCTION answer_read() RETURNS text STABLE LANGUAGE plpgsql SET posterior.cache = off AS
		\$\$ BEGIN RETURN answer(); END \$\$;
	CREATE FUNCTION same() RETURNS text STABLE LANGUAGE sql AS \$\$
		SELECT posterior.rows(s) || CASE WHEN s OPERATOR(posterior.=)
				(SELECT posterior.context(posterior.basis(s), y, x, c) FROM t)
			AND answer() = answer_read() THEN ' same' ELSE ' differ' END
		FROM posterior.sums('c') s \$\$;
};
my $rows = q{INSERT INTO t SELECT i, sin(i), chr(97 + i % 3), cos(i) FROM generate_series(1, 60) i;
	SELECT posterior.create_context('c', 't', 'y', '{x,c}', model => 'sums');};

sub same
{
	my ($node) = @_;
	return $node->safe_psql('postgres', 'SELECT same()');
}

# Whether a statement, after these, reads no row.
sub kept
{
	my ($node, $before) = @_;
	my ($out, $err) = ('', '');
	$node->psql('postgres', ($before // '')
		. q{SET client_min_messages = debug1; SELECT answer() IS NOT NULL},
		stdout => \$out, stderr => \$err);
	return $err =~ /rows are read because (.*)/ ? $1 : 'kept';
}

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 'logical');
$primary->append_conf('postgresql.conf', "max_prepared_transactions = 10\nautovacuum = off\n");
$primary->start;
$primary->safe_psql('postgres', $setup . $rows);
is(same($primary), '60 same', 'sums of the rows');
is(kept($primary), 'kept', 'that are not read');
$primary->safe_psql('postgres', q{INSERT INTO t VALUES (100, 1, 'a', 1), (101, NULL, NULL, 2);
	UPDATE t SET y = 3 WHERE k < 5; DELETE FROM t WHERE k = 7;});
is(same($primary), '61 same', 'rows come, change and go');
is(kept($primary), 'kept', 'and are not read');
is(kept($primary, 'BEGIN; DELETE FROM t WHERE k = 8; SAVEPOINT s; DELETE FROM t; ROLLBACK TO s;'),
	'kept', 'nor are own ones');
is(kept($primary, 'BEGIN ISOLATION LEVEL REPEATABLE READ;'), 'kept', 'nor by repeatable read');
like(kept($primary, 'BEGIN ISOLATION LEVEL SERIALIZABLE;'), qr/serializable/, 'else they are');
like(kept($primary, 'BEGIN; ALTER TABLE t DISABLE TRIGGER USER; DELETE FROM t WHERE k = 9;'),
	qr/noted/, 'also where no trigger notes them');

# many notes: writers fold them
$primary->safe_psql('postgres', 'INSERT INTO t SELECT i, sin(i), chr(97 + i % 3), cos(i)
	FROM generate_series(200, 4199) i');
$primary->safe_psql('postgres', join(';', map { "UPDATE t SET y = y + 0.01 WHERE k = $_" }
	200 .. 3199));
is(same($primary), '4061 same', 'many notes');
cmp_ok($primary->safe_psql('postgres', 'SELECT count(*) FROM posterior_internal.noted_row'), '<',
	10000, 'are folded by writers');
is($primary->safe_psql('postgres', q{SELECT posterior.warm_context('c')}), '4061',
	'and on request');
is($primary->safe_psql('postgres', 'SELECT count(*) FROM posterior_internal.noted_row'), '0',
	'all of them');
is(same($primary), '4061 same', 'which changes nothing');

# ---- crash ----
$primary->safe_psql('postgres', q{BEGIN; DELETE FROM t WHERE k = 200; PREPARE TRANSACTION 'open'});
my $writer = session($primary);
ask($writer, 'BEGIN; DELETE FROM t WHERE k BETWEEN 300 AND 400');
$primary->stop('immediate');
$primary->start;
is(same($primary), '4061 same', 'after a crash');
is(kept($primary), 'kept', 'without reading');
$primary->safe_psql('postgres', q{COMMIT PREPARED 'open'});
is(same($primary), '4060 same', 'and with what was prepared');

# ---- standby ----
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;
$primary->safe_psql('postgres', 'DELETE FROM t WHERE k > 3000');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(same($standby), '2861 same', 'a standby');
is(kept($standby), 'kept', 'reads no rows');
my $old = session($standby);
# what that snapshot sees is not cleaned away
my $holder = session($primary);
ask($holder, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
is(ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT same()'), '2861 same', 'a snapshot');
$primary->safe_psql('postgres', q{UPDATE t SET y = 0 WHERE k < 20;
	SELECT posterior.warm_context('c');
	ALTER TABLE t DISABLE TRIGGER USER; DELETE FROM t WHERE k = 20;
	DO 'DECLARE t name; BEGIN
		FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = ''t''::regclass LOOP
			EXECUTE format(''ALTER TABLE t ENABLE ALWAYS TRIGGER %I'', t);
		END LOOP;
	END';
	SELECT posterior.warm_context('c'); DELETE FROM t WHERE k = 21;});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(same($standby), '2859 same', 'it follows');
is(kept($standby), 'kept', 'without reading');
is(ask($old, 'SELECT same()'), '2861 same', 'and old snapshots stay');
$standby->promote;
is(ask($old, 'SELECT same()'), '2861 same', 'through a promotion, too');
$standby->safe_psql('postgres', 'DELETE FROM t WHERE k = 22');
is(same($standby), '2858 same', 'after which it keeps its own');
is(kept($standby), 'kept', 'without reading');
leave($old);
leave($holder);
$standby->stop;

# ---- logical replication ----
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->start;
$subscriber->safe_psql('postgres', $setup . $rows . 'DELETE FROM t;');
$primary->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE t');
my $connection = $primary->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p");
$subscriber->poll_query_until('postgres',
		"SELECT count(1) = 0 FROM pg_subscription_rel WHERE srsubstate NOT IN ('r', 's')")
	or die 'no sync';
$primary->wait_for_catchup('s');
is(same($subscriber), '2859 same', 'the initial copy of a subscription');
is(kept($subscriber), 'kept', 'is noted');
$primary->safe_psql('postgres', q{INSERT INTO t VALUES (9000, 1, 'b', 1);
	DELETE FROM t WHERE k = 30;
	DELETE FROM t WHERE k = 31; UPDATE t SET y = 2 WHERE k = 32});
$primary->wait_for_catchup('s');
is(same($subscriber), '2858 same', 'and so is what is applied later');
is(kept($subscriber), 'kept', 'without reading');
$primary->safe_psql('postgres', q{TRUNCATE t; INSERT INTO t SELECT i, sin(i), 'a', cos(i)
	FROM generate_series(1, 40) i});
$primary->wait_for_catchup('s');
is(same($subscriber), '40 same', 'TRUNCATE');
isnt(kept($subscriber), 'kept', 'makes it read');
$subscriber->safe_psql('postgres', q{SELECT posterior.warm_context('c')});
is(kept($subscriber), 'kept', 'until the sums are made anew');
is(same($subscriber), '40 same', 'of all rows');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');

# ---- dumps ----
$subscriber->safe_psql('postgres', q{INSERT INTO t VALUES (77, 1, 'a', 5)});
my $answer = $subscriber->safe_psql('postgres', 'SELECT answer()');
my $file = $subscriber->data_dir . '/../dump.sql';
$subscriber->command_ok([ 'pg_dump', '-f', $file, '-d', $subscriber->connstr('postgres') ],
	'a dump');
$subscriber->safe_psql('postgres', 'CREATE DATABASE restored');
$subscriber->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-d',
		$subscriber->connstr('restored') ], 'is restored');
$subscriber->safe_psql('postgres', q{ALTER DATABASE restored SET posterior.model = 'sums'});
is($subscriber->safe_psql('restored', 'SELECT same()'), '41 same', 'with the context');
is($subscriber->safe_psql('restored', 'SELECT answer()'), $answer, 'its basis and its fit');
$subscriber->safe_psql('restored', q{SELECT posterior.warm_context('c');
	DELETE FROM t WHERE k = 77; UPDATE t SET y = 4 WHERE k = 3});
is($subscriber->safe_psql('restored', 'SELECT same()'), '40 same', 'and its triggers');
is($subscriber->safe_psql('restored', 'SELECT count(*) FROM posterior_internal.noted_row'), '3',
	'which note rows');
$subscriber->stop;
$primary->stop;
done_testing();
