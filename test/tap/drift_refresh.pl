# The background worker records how far later rows have drifted from the prefix, and has a context
# encoded anew beyond posterior.drift_limit; contexts that keep sums have theirs of each statement.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('drift');
$node->init;
$node->append_conf('postgresql.conf', qq{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = 10
	posterior.row_security = private
	max_prepared_transactions = 1
	autovacuum = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t (i int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, y float8, x float8);
	INSERT INTO t (y, x) SELECT sin(i), cos(i) FROM generate_series(1, 64) i;
	SELECT posterior.create_context('t', 't', 'y', features => '{x}', order_by => 'i',
			model => 'tabular_small');
	SELECT posterior.create_context('other', 't', 'y', features => '{x}', order_by => 'i',
			model => 'tabular_small', max_rows => 40, filter => 'i < 60');
	SELECT posterior.create_context('by_hand', 't', 'y', features => '{x}', order_by => 'i',
			model => 'tabular_small');
	SELECT posterior.warm_context('t');
});

my $drift = q{SELECT drift FROM posterior.stat_contexts WHERE name = 't'};
my $refreshed = q{SELECT refreshed_rows FROM posterior.contexts WHERE name = 't'};
# Whether answers are those of a context whose rows are all prefix.
my $whole = q{
	SET posterior.model = 'tabular_small';
	SELECT posterior.predict('t', q)
		OPERATOR(posterior.=) posterior.predict((SELECT posterior.context(y, x ORDER BY i) FROM t),
			q.x) FROM (SELECT 0.3::float8 AS x) q};

is($node->safe_psql('postgres', $drift), '', 'nothing has been looked at');
$node->safe_psql('postgres', q{INSERT INTO t (y, x) SELECT sin(i), cos(i)
			FROM generate_series(65, 104) i});
ok($node->poll_query_until('postgres',
			"$drift AND drift = 0"  =~ s/SELECT drift/SELECT count(*) = 1/r),
		'rows like those before have not drifted');
$node->safe_psql('postgres', q{INSERT INTO t (y, x) SELECT sin(i), 10 + cos(i)
			FROM generate_series(105, 120) i});
ok($node->poll_query_until('postgres',
			"$drift AND drift > 1" =~ s/SELECT drift/SELECT count(*) = 1/r), 'other ones have');
is($node->safe_psql('postgres', $refreshed), '', 'and without a limit that is all');
is($node->safe_psql('postgres', $whole), 'f', 'the prefix is where it was');
ok($node->poll_query_until('postgres',
			q{SELECT drift > 1 FROM posterior.stat_contexts WHERE name = 'by_hand'}),
		'another context has drifted as far');
is($node->safe_psql('postgres', q{SELECT posterior.refresh_context('by_hand') IS NULL;
		SELECT posterior.warm_context('by_hand') IS NULL;
		SELECT drift FROM posterior.stat_contexts WHERE name = 'by_hand'}), "f\nf\n",
	'a refresh by hand leaves no drift of what is no later row any more');
$node->safe_psql('postgres', q{SELECT posterior.drop_context('by_hand')});

# The worker asks how far rows have drifted when some are written, and may have read the limit
# before or after that: the row is there first, and is written again until the context is new.
my $again = sub { "WITH w AS (UPDATE t SET y = y WHERE i = $_[0]) $refreshed" };
$node->safe_psql('postgres', q{INSERT INTO t (y, x) VALUES (0, 10)});
$node->append_conf('postgresql.conf', 'posterior.drift_limit = 0.5');
$node->reload;
ok($node->poll_query_until('postgres', $again->(121), '121'),
	'beyond the limit the context is encoded anew');
is($node->safe_psql('postgres', $whole), 't', 'with all rows as its prefix');
ok($node->poll_query_until('postgres',
			"$drift AND drift IS NULL AND prefix_rows = 121" =~ s/SELECT drift/SELECT count(
			*) = 1/r), 'no later rows, no drift');
is($node->safe_psql('postgres', q{SELECT refreshed_rows FROM posterior.contexts
			WHERE name = 'other'}), '', 'others are left alone');

# Few later rows do not cause a refresh, however far they have drifted.
$node->safe_psql('postgres', q{INSERT INTO t (y, x) SELECT 1e3, 1e3 FROM generate_series(1, 6)});
ok($node->poll_query_until('postgres', q{SELECT suffix_rows = 6 FROM posterior.stat_contexts
			WHERE name = 't'}), 'a few more are encoded');
is($node->safe_psql('postgres', $refreshed), '121', 'and wait until they are more');

# A context whose owner may no longer read the rows is not encoded, and blocks no other context.
$node->safe_psql('postgres', q{
	CREATE ROLE former;
	GRANT SELECT, INSERT ON t TO former;
	SET ROLE former;
	SELECT posterior.create_context('former', 't', 'y', features => '{x}', order_by => 'i',
			model => 'tabular_small', maintain => 'read');
	RESET ROLE;
	UPDATE posterior.context_definition SET maintain = 'trigger' WHERE name = 'former';
	REVOKE SELECT ON t FROM former;
	INSERT INTO t (y, x) SELECT 1e3, 1e3 FROM generate_series(1, 40)});
ok($node->poll_query_until('postgres', $refreshed, '167'),
	'the worker goes on to the next context');
is($node->safe_psql('postgres', $whole), 't', 'whose answers are right');

# Under a policy the owner's rows give no drift for all readers; no refresh would end it, and none
# begins.
$node->safe_psql('postgres', q{
	CREATE ROLE shown;
	GRANT CREATE ON SCHEMA public TO shown;
	SET ROLE shown;
	CREATE TABLE s (i int PRIMARY KEY, y float8, x float8);
	INSERT INTO s SELECT i, sin(i), cos(i) FROM generate_series(1, 64) i;
	SELECT posterior.create_context('s', 's', 'y', features => '{x}', order_by => 'i',
			model => 'tabular_small');
	CREATE POLICY all_rows ON s USING (true);
	ALTER TABLE s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	RESET ROLE;
	SELECT posterior.warm_context('s')});
my $version = $node->safe_psql('postgres',
		q{SELECT version FROM posterior.context_definition WHERE name = 's'});
my $rows = 64;
for my $more (40, 1, 1)
{
	$node->safe_psql('postgres',
			"INSERT INTO s SELECT $rows + i, sin(i), 10 + cos(i) FROM generate_series(1, $more) i");
	$rows += $more;
	ok($node->poll_query_until('postgres', qq{SELECT rows = $rows FROM posterior.stat_contexts
				WHERE name = 's'}), "$rows rows are read ahead");
}
# The worker has gone on when it has encoded another table's rows.
$node->safe_psql('postgres', q{
	CREATE TABLE u (i int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, y float8, x float8);
	INSERT INTO u (y, x) SELECT sin(i), cos(i) FROM generate_series(1, 20) i;
	SELECT posterior.create_context('u', 'u', 'y', features => '{x}', order_by => 'i',
			model => 'tabular_small');
	SELECT posterior.warm_context('u');
	INSERT INTO u (y, x) VALUES (0, 0)});
my $encoded = q{SELECT rows = %d FROM posterior.stat_contexts WHERE name = 'u'};
ok($node->poll_query_until('postgres', sprintf($encoded, 21)),
	'and so are those of the next table');
is($node->safe_psql('postgres', q{SELECT version FROM posterior.context_definition
			WHERE name = 's'}), $version, 'under the same definition');

# An open change of a definition holds up neither the worker nor, by table locks, itself.
$node->safe_psql('postgres', q{
	BEGIN;
	SELECT posterior.refresh_context('t');
	PREPARE TRANSACTION 'slow'});
$node->safe_psql('postgres', q{INSERT INTO t (y, x) SELECT 1e6, 1e6 FROM generate_series(1, 60)});
ok($node->poll_query_until('postgres',
			q{SELECT rows = 227 AND drift > 1 FROM posterior.stat_contexts WHERE name = 't'}),
		'rows have drifted during a refresh by hand');
$node->safe_psql('postgres', q{INSERT INTO u (y, x) VALUES (0, 0)});
ok($node->poll_query_until('postgres', sprintf($encoded, 22)), 'and the worker does not wait');
is($node->safe_psql('postgres', $refreshed), '167', 'nor refresh');
$node->safe_psql('postgres', q{COMMIT PREPARED 'slow'});
ok($node->poll_query_until('postgres', $again->(227), '227'), 'until that has ended');

# Contexts that keep sums are compared with the rows of their fit by each statement.
$node->safe_psql('postgres', q{
	CREATE TABLE v (x float8, y float8);
	INSERT INTO v SELECT cos(i), sin(i) FROM generate_series(1, 400) i;
	SELECT posterior.create_context('v', 'v', 'y', '{x}', model => 'tabular_sums')});
my $ask = q{SELECT count(posterior.predict('v', '{"x": 0.5}'::jsonb))};
my $moved = q{SELECT prefix_rows, suffix_rows, round(drift::numeric, 1)
	FROM posterior.stat_contexts WHERE name = 'v'};
$node->safe_psql('postgres', $ask);
is($node->safe_psql('postgres', $moved), '400|0|0.0', 'rows of a fit have not drifted from it');
$node->safe_psql('postgres', q{INSERT INTO v SELECT cos(i), sin(i) + 10
	FROM generate_series(1, 400) i} . ";$ask");
is($node->safe_psql('postgres', $moved), '400|400|6.9', 'all rows with later ones have');
$node->safe_psql('postgres', 'DELETE FROM v WHERE y > 5;' . $ask);
is($node->safe_psql('postgres', $moved), '400|0|0.0', 'and without them have not');
$node->stop;
ok(!$node->log_contains('ERROR|WARNING|PANIC'), 'and the log is quiet');
done_testing();
