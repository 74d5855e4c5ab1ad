# Upgrades: a database made by 1.0 with this library becomes equal to a new one, keeps its contents,
# and gives the same answers. The install script of 1.0 is in test/upgrade.
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

my $node = PostgreSQL::Test::Cluster->new('upgrade');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'pg_posterior'\nautovacuum = off\n");
$node->start;

# The extension's objects in a database as PostgreSQL's own dump for upgrades describes them, with
# rights, comments and membership: a hash of the dump's entries, without numbers of one database.
sub catalogue
{
	my ($database) = @_;
	my $file = $node->data_dir . "/../$database.sql";
	my @dump = ('pg_dump', '--binary-upgrade', '--schema-only', '-f', $file);
	$node->command_ok([ @dump, '-d', $node->connstr($database) ], "the catalogue of $database");
	my %entries;
	for (split /^--\n(?=-- (?:Name|TOC entry))/m, slurp_file($file))
	{
		next unless /^-- Name: (.*; Type: (.*)); Schema: /m && $2 ne 'DATABASE';
		my $entry = $1;
		s/^SELECT pg_catalog\.binary_upgrade_set_next_.*\n//mg;
		s/^UPDATE pg_catalog\.pg_class\nSET relfrozenxid .*\nWHERE oid = .*\n//mg;
		s/(binary_upgrade_create_empty_extension\(.*)'\{[\d,]+\}'/$1'{}'/;
		s/^\\(un)?restrict .*\n//mg;
		$entries{$entry} .= $_;
	}
	return \%entries;
}

# The names of entries by which two catalogues differ.
sub differing
{
	my ($one, $other) = @_;
	my %all = (%$one, %$other);
	return grep { ($one->{$_} // '') ne ($other->{$_} // '') } sort keys %all;
}

# These entries, as both catalogues have them.
sub differences
{
	my ($one, $other) = @_;
	return join '', map { "--- one\n" . ($one->{$_} // '') . "--- other\n" . ($other->{$_} // '') }
		differing($one, $other);
}

# Members and their dependence on other objects, which the dump shows by its order only.
my $members = q{
	SELECT pg_describe_object(classid, objid, objsubid),
		pg_describe_object(refclassid, refobjid, refobjsubid), deptype
	FROM pg_depend d
	WHERE (classid, objid) IN (SELECT classid, objid FROM pg_depend
			WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e')
		AND (classid, objid) NOT IN (SELECT 'pg_class'::regclass, oid FROM pg_class
				WHERE relkind = 't')
	ORDER BY 1, 2, 3};
my $initial_rights = q{
	SELECT pg_describe_object(classoid, objoid, objsubid),
		ARRAY(SELECT i::text FROM unnest(initprivs) i ORDER BY 1)
	FROM pg_init_privs WHERE privtype = 'e' ORDER BY 1};
my $configuration = q{
	SELECT c::regclass, condition
	FROM pg_extension, unnest(extconfig, extcondition) u(c, condition)
	WHERE extname = 'pg_posterior' ORDER BY 1};
my $models = 'SELECT name, bundled, md5(file) FROM posterior.model_file ORDER BY name';

# ---- a database of 1.0 with something in it ------------------------------------------------------

$node->safe_psql('postgres', "CREATE ROLE $_") for 'keeper', 'reader';
$node->safe_psql('postgres', "CREATE DATABASE $_") for 'old', 'new', 'restored';
$node->safe_psql('old', q{
	CREATE EXTENSION pg_posterior VERSION '1.0';
	CREATE TYPE sky AS ENUM ('sun', 'cloud', 'rain');
	CREATE TABLE rides (id int PRIMARY KEY, temp float8, sky sky, wind int, cnt float8);
	INSERT INTO rides SELECT i, 15 + 9 * sin(i / 9.0),
			(ARRAY['sun', 'cloud', 'rain']::sky[])[1 + i % 3], nullif(i % 7, 0),
			400 + 20 * sin(i / 9.0) - i % 3
		FROM generate_series(1, 60) i;
	ALTER TABLE rides OWNER TO keeper;
	GRANT SELECT (id) ON rides TO reader;
	SET ROLE keeper;
	SELECT posterior.create_context('all', 'rides', 'cnt');
	SELECT posterior.create_context('some', 'rides', 'cnt', '{temp,sky}', 'id DESC', max_rows => 30,
		filter => 'wind > 1 AND sky <> ''rain''');
	SELECT posterior.create_context('read', 'rides', 'cnt', maintain => 'read',
		model => 'tabular_small');
	SELECT posterior.create_context('skies', 'rides', 'sky', '{temp,wind,cnt}');
	RESET ROLE;
	SELECT posterior.refresh_context('some'), posterior.warm_context('some');
	CREATE TABLE contexts AS
		SELECT 1 AS id, posterior.context(cnt, temp, sky ORDER BY id) AS c FROM rides
		UNION ALL SELECT 2, posterior.class_context(sky, temp, wind) FROM rides;
	CREATE TABLE answers AS
		SELECT id, posterior.predict(c, 20.0, 'sun'::sky) AS d FROM contexts WHERE id = 1
		UNION ALL SELECT 2, posterior.predict(c, 20.0, 3) FROM contexts WHERE id = 2
		UNION ALL SELECT 3, posterior.normal(1, 2)
		UNION ALL SELECT 4, posterior.mixture('{0.5,0.5}', '{0,1}', '{1,2}')
		UNION ALL SELECT 5, posterior.bars('{0.5,0.5}', '{0,1,3}');
	CREATE INDEX ON answers (d);
	SELECT posterior.load_model('mine', file) FROM posterior.model_file WHERE name = 'toy';
	ALTER TABLE rides RENAME COLUMN wind TO breeze;
	CREATE VIEW seen AS SELECT name, relation, filter, refreshed_rows FROM posterior.contexts;
	CREATE VIEW counted AS SELECT name, skips, rows, prefix_rows, drift
		FROM posterior.stat_contexts;
	CREATE VIEW doing AS SELECT name, phase FROM posterior.stat_progress;
	REVOKE SELECT ON posterior.stat_progress FROM PUBLIC;
	GRANT SELECT ON posterior.stat_progress TO keeper;
});

my %asked = (
	definitions => 'SELECT name, owner, relation, target, features, order_by, filter, model,
		max_rows, maintain, refreshed_rows FROM posterior.contexts ORDER BY name',
	'definitions through a view' => 'SELECT * FROM seen ORDER BY name',
	triggers => q{SELECT tgrelid::regclass, tgname, tgenabled, tgfoid::regproc
		FROM pg_trigger WHERE NOT tgisinternal AND tgname <> 'keep_out' ORDER BY 1, 2},
	'named contexts' => q{SELECT name, posterior.predict(name, q)
		FROM posterior.contexts, (SELECT 61 AS id, 20.0::float8 AS temp, 'sun'::sky AS sky,
			3 AS breeze, 410.0::float8 AS cnt) q ORDER BY name},
	'stored contexts' =>
		'SELECT id, c, posterior.rows(c), posterior.features(c) FROM contexts ORDER BY id',
	'answers of stored contexts' => q{SELECT posterior.predict(c, 21.0, 'rain'::sky),
		posterior.mean(posterior.predict(c, NULL, 'sun'::sky)) FROM contexts WHERE id = 1},
	'labels of stored contexts' => q{
		SELECT posterior.probabilities(posterior.predict(c, 21.0, 2)) FROM contexts WHERE id = 2},
	distributions => 'SELECT id, d, posterior.kind(d) FROM answers ORDER BY id',
	'an index of distributions' => q{
		SET enable_seqscan = off; SET enable_sort = off; SELECT id FROM answers ORDER BY d},
	'joint draws' => q{SELECT posterior.sample('all',
		ARRAY(SELECT r FROM rides r WHERE id < 4 ORDER BY id), draws => 2, seed => 7)},
	'joint density' => q{
		SELECT posterior.log_density('all', cnt, r ORDER BY id) FROM rides r WHERE id < 4},
	frames => q{SELECT id, posterior.regress(cnt, temp, breeze)
		OVER (ORDER BY id ROWS BETWEEN 20 PRECEDING AND 1 PRECEDING) FROM rides
			ORDER BY id LIMIT 30},
	models => $models,
);
# Answer of a database to one of these queries.
sub answer
{
	my ($database, $question) = @_;
	my ($status, $out, $err) = $node->psql($database, $question);
	return $out . $err;
}

my %before = map { $_ => $node->safe_psql('old', $asked{$_}) } sort keys %asked;
ok($before{$_} ne '', "1.0 answers: $_") for sort keys %asked;
is(() = $before{'named contexts'} =~ /mixture|categorical/g, 4, 'all named contexts answer');
like(answer('old', "\\set VERBOSITY verbose\nSELECT * FROM posterior.stat_contexts"),
	qr/ERROR:  55000: the functions of extension "pg_posterior" are older.*HINT:  Run ALTER/s,
	'the counters of 1.0 ask for the upgrade');
my $dumped = $node->data_dir . '/../dumped.sql';
$node->command_ok([ 'pg_dump', '-f', $dumped, '-d', $node->connstr('old') ], 'a dump of 1.0');

# ---- the upgrade ---------------------------------------------------------------------------------

my $stays = session($node, 'old');
my %held = map { $_ => ask($stays, $asked{$_}) } 'named contexts', 'distributions';
ask($stays, q{PREPARE again AS SELECT posterior.predict('all', r) FROM rides r WHERE id = 2});
my $prepared = ask($stays, 'EXECUTE again');
my $version = q{SELECT extversion FROM pg_extension WHERE extname = 'pg_posterior'};
$node->safe_psql('old', 'BEGIN; ALTER EXTENSION pg_posterior UPDATE; ROLLBACK');
is(answer('old', $version), '1.0', 'rolled back');
is(answer('old', $asked{'named contexts'}), $before{'named contexts'}, 'and still answering');
$node->safe_psql('old', 'ALTER EXTENSION pg_posterior UPDATE');
is(answer('old', $version), $node->safe_psql('old',
	q{SELECT default_version FROM pg_available_extensions WHERE name = 'pg_posterior'}),
	'the version');
is(answer('old', $asked{$_}), $before{$_}, "after the upgrade: $_") for sort keys %asked;
is(ask($stays, $asked{$_}), $held{$_}, "a session that stayed: $_") for sort keys %held;
is(ask($stays, 'EXECUTE again'), $prepared, 'and its prepared statement');
leave($stays);
is(answer('old', q{SELECT name, rows FROM counted WHERE name = 'all'}), 'all|60',
	'counters through a view');
$node->safe_psql('old',
	q{INSERT INTO rides VALUES (61, 5, 'rain', 5, 90), (62, 6, 'rain', 5, 95),
		(63, 7, 'rain', 2, 99)});
isnt(answer('old', $asked{'named contexts'}), $before{'named contexts'}, 'new rows are read');
$node->safe_psql('old', 'DELETE FROM rides WHERE id > 60');
is(answer('old', $asked{'named contexts'}), $before{'named contexts'}, 'deleted ones are not');

# 1.1 is stricter about rights, and keeps the administrator's grants and revokes.
sub may_select
{
	my ($role, $relation) = @_;
	return answer('old', "SELECT has_table_privilege('$role', 'posterior.$relation', 'SELECT')");
}
is(may_select('reader', 'context_definition'), 'f', 'definitions are not for all');
is(may_select('reader', 'contexts'), 't', 'their view is');
is(answer('old', q{SET ROLE reader;
	SELECT count(*), count(refreshed_rows) FROM posterior.contexts;
	SELECT count(*) FROM posterior.stat_contexts}), "4|0\n0", 'counts are restricted');
is(may_select('reader', 'stat_progress'), 'f', 'a right that was revoked stays so');
is(may_select('keeper', 'stat_progress'), 't', 'a right that was granted stays');
is(answer('old', q{SELECT posterior.alter_context('read', estimators => 2);
	SELECT estimators, freshness FROM posterior.contexts WHERE name = 'read'}), "\n2|exact",
	'new arguments');
is(answer('old', 'SELECT posterior.probability(d, 1) IS NULL FROM answers WHERE id = 2'), 't',
	'a new function');

# ---- the same catalogue as a new database --------------------------------------------------------

$node->safe_psql('old', q{
	GRANT SELECT ON posterior.stat_progress TO PUBLIC;
	REVOKE SELECT ON posterior.stat_progress FROM keeper;
	DROP VIEW seen, counted, doing;
	DROP TABLE rides, answers, contexts;
	DROP TYPE sky;
	SELECT posterior.drop_model('mine')});
$node->safe_psql('new', 'CREATE EXTENSION pg_posterior');
my %alike = (members => $members, 'initial rights' => $initial_rights,
	configuration => $configuration, models => $models);
for (sort keys %alike)
{
	is($node->safe_psql('old', $alike{$_}), $node->safe_psql('new', $alike{$_}),
		"as in a new database: $_");
}
my $new = catalogue('new');
cmp_ok(scalar(keys %$new), '>', 150, 'the catalogue is told');
for my $type ('EXTENSION', 'COMMENT', 'ACL', 'FUNCTION', 'AGGREGATE', 'OPERATOR CLASS', 'OPERATOR',
	'TYPE', 'TABLE', 'VIEW', 'CONSTRAINT', 'EVENT TRIGGER')
{
	ok(scalar(grep { /; Type: $type$/ } keys %$new), "the catalogue has $type");
}
is(differences(catalogue('old'), $new), '', 'the catalogue of an upgraded database');

# A difference of every kind is seen, each in the entry that it is about.
is(differences(catalogue('new'), $new), '', 'none where there is none');
my %changed = (
	'ALTER FUNCTION posterior.mean(posterior.distribution) COST 3' =>
		'mean(posterior.distribution); Type: FUNCTION',
	q{COMMENT ON VIEW posterior.devices IS 'other'} => 'VIEW devices; Type: COMMENT',
	'REVOKE SELECT ON posterior.contexts FROM PUBLIC' => 'TABLE contexts; Type: ACL',
	'ALTER VIEW posterior.contexts RESET (security_barrier)' => 'contexts; Type: VIEW',
	'ALTER FUNCTION posterior.median(posterior.distribution) PARALLEL RESTRICTED' =>
		'median(posterior.distribution); Type: FUNCTION',
	'ALTER EVENT TRIGGER posterior_dropped ENABLE' => 'posterior_dropped; Type: EVENT TRIGGER',
	'ALTER TABLE posterior.context_definition DROP CONSTRAINT context_definition_id_key' =>
		'context_definition context_definition_id_key; Type: CONSTRAINT',
	'ALTER EXTENSION pg_posterior DROP FUNCTION posterior.mode(posterior.distribution)' =>
		'mode(posterior.distribution); Type: FUNCTION');
$node->safe_psql('new', join('; ', sort keys %changed));
my @differing = differing(catalogue('new'), $new);
for my $change (sort keys %changed)
{
	ok(scalar(grep { $_ eq $changed{$change} } @differing), "seen: $change");
}
is(scalar(@differing), scalar(keys %changed), 'and nothing else');

# ---- a dump of 1.0 becomes 1.1 -------------------------------------------------------------------

my ($status, $out, $err) = $node->psql('restored', slurp_file($dumped));
is($err, '', 'restored by 1.1');
is(answer('restored', $asked{$_}), $before{$_}, "restored: $_") for sort keys %asked;

# ---- a schema that another role has made ---------------------------------------------------------

# The scripts run as superuser, and an operator for just these types would come before pg_catalog's.
my $lies_in_wait = q{
	CREATE FUNCTION posterior.same(oid, regnamespace) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN EXECUTE 'ALTER ROLE stranger SUPERUSER'; RETURN true; END $$;
	CREATE OPERATOR posterior.= (LEFTARG = oid, RIGHTARG = regnamespace,
		FUNCTION = posterior.same);};
my $belongs = qr/schema "posterior" belongs to role "stranger"/;
$node->safe_psql('postgres', 'CREATE ROLE stranger');
for my $database ('taken', 'taken_before')
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE SCHEMA posterior AUTHORIZATION stranger');
}
$node->safe_psql('taken', "SET ROLE stranger; $lies_in_wait");
like(answer('taken', 'CREATE EXTENSION pg_posterior'), $belongs,
	'an installation looks whose it is');
$node->safe_psql('taken', 'ALTER SCHEMA posterior OWNER TO CURRENT_USER');
like(answer('taken', 'CREATE EXTENSION pg_posterior'),
	qr/schema "posterior" is not empty.*There is /s, 'and what is in it');
$node->safe_psql('taken', 'DROP SCHEMA posterior CASCADE; CREATE SCHEMA posterior;
	CREATE EXTENSION pg_posterior');
$node->safe_psql('taken_before', "CREATE EXTENSION pg_posterior VERSION '1.0';
	SET ROLE stranger; $lies_in_wait");
like(answer('taken_before', 'ALTER EXTENSION pg_posterior UPDATE'), $belongs,
	'an upgrade looks whose it is');
$node->safe_psql('taken_before', 'ALTER SCHEMA posterior OWNER TO CURRENT_USER;
	ALTER EXTENSION pg_posterior UPDATE');
is($node->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'stranger'"), 'f',
	'nothing of it has run');

$node->stop;
done_testing();
