# Named contexts in dumps: definitions, filters and triggers are restored, whatever the order in
# which objects were made and whatever their present names.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'pg_posterior'\nmax_standby_streaming_delay = -1\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE ROLE keeper;
	CREATE SCHEMA "Odd schema";
	CREATE TYPE sky AS ENUM ('sun', 'rain');
	CREATE TABLE "Odd schema"."T.able" (gone int, id int PRIMARY KEY, "x.y ""z" float8, sky sky,
			at timestamptz, y float8);
	ALTER TABLE "Odd schema"."T.able" DROP COLUMN gone;
	ALTER TABLE "Odd schema"."T.able" OWNER TO keeper;
	GRANT ALL ON SCHEMA "Odd schema" TO keeper;
	INSERT INTO "Odd schema"."T.able" SELECT i, sin(i), (ARRAY['sun', 'rain']::sky[])[1 + i % 2],
		'2024-01-01 UTC'::timestamptz + i * interval '1 day', cos(i) FROM generate_series(1, 40) i;
	SET ROLE keeper;
	SELECT posterior.create_context('all', '"Odd schema"."T.able"', 'y');
	SELECT posterior.create_context('some', '"Odd schema"."T.able"', 'y', '{"x.y \"z",sky}',
			'at DESC, id', max_rows => 20,
		filter => '"x.y ""z" < 0.1::float8 * 9 AND at > ''2024-01-05 12:00+01'''
			' AND (sky = ''sun'' OR id < 30)');
	SELECT posterior.create_context('watched', '"Odd schema"."T.able"', 'y', maintain => 'read',
		neighbours => 12);
	RESET ROLE;
	CREATE VIEW aa_view AS SELECT id, y FROM "Odd schema"."T.able";
	SELECT posterior.create_context('seen', 'aa_view', 'y', order_by => 'id');
	CREATE TABLE broken (id int PRIMARY KEY, x int, y int);
	SELECT posterior.create_context('broken', 'broken', 'y', filter => 'x > 0');
	ALTER TABLE broken DROP COLUMN x;
	ALTER TYPE sky RENAME VALUE 'sun' TO 'shine';
	ALTER TABLE "Odd schema"."T.able" RENAME COLUMN y TO "Target";
});

# Views and answers as a user sees them.
my $definitions = q{SELECT name, owner, relation, target, features, order_by, filter, model,
		max_rows, maintain, neighbours FROM posterior.contexts ORDER BY name};
my $answers = q{
	SELECT name, posterior.predict(name, q) FROM posterior.contexts,
		(SELECT 50 AS id, 0.5::float8 AS "x.y ""z", 'shine'::sky AS sky,
			timestamptz '2024-03-01 UTC' AS at) q WHERE name <> 'broken' ORDER BY name};
my $triggers = q{SELECT tgrelid::regclass, tgname, tgenabled, tgfoid::regproc FROM pg_trigger
		WHERE NOT tgisinternal AND tgname <> 'keep_out' ORDER BY 1, 2};
# A standby reads the same definitions, and changes none. It comes before the databases, which it
# would have as well.
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', $answers), $node->safe_psql('postgres', $answers),
	'the standby answers the same');
my ($status, $out, $err) = $standby->psql('postgres', q{SELECT posterior.drop_context('all')});
like($err, qr/read-only transaction/, 'and drops nothing');
$node->safe_psql('postgres', q{DELETE FROM "Odd schema"."T.able" WHERE id > 38});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', $answers), $node->safe_psql('postgres', $answers),
	'it follows the primary');
$standby->stop;

my %before = map { $_ => $node->safe_psql('postgres', $_) } $definitions, $answers, $triggers;
like($before{$definitions},
	qr/^some\|keeper\|"Odd[ ]schema"\."T\.able"\|Target\|\{"x\.y[ ]\\"z",sky\}\|at[ ]DESC,[ ]id
		\|.*sky[ ]=[ ]'shine'::sky.*\|20\|trigger\|$/mx, 'definitions');
is(() = $before{$answers} =~ /mixture/g, 4, 'answers');
is(() = $before{$triggers} =~ /\|A\|/g, 4, 'triggers');
is(() = $before{$triggers} =~ /\|R\|/g, 2, 'triggers for replicas');

for my $format ('plain', 'custom')
{
	my $dump = $node->data_dir . "/../dump.$format";
	$node->safe_psql('postgres', "CREATE DATABASE $format");
	$node->command_ok([ 'pg_dump', "-F$format", '-f', $dump, '-d', $node->connstr('postgres') ],
		"pg_dump, $format");
	if ($format eq 'plain')
	{
		$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d',
			$node->connstr($format) ], 'restore');
	}
	else
	{
		$node->command_ok([ 'pg_restore', '-e', '-j', '2', '-d', $node->connstr($format), $dump ],
			'parallel restore');
	}
	is($node->safe_psql($format, $definitions), $before{$definitions}, "definitions, $format");
	is($node->safe_psql($format, $answers), $before{$answers}, "answers, $format");
	is($node->safe_psql($format, $triggers), $before{$triggers}, "triggers, $format");
	my ($status, $out, $err) = $node->psql($format,
			q{SELECT posterior.predict('broken', q) FROM (SELECT 1 AS id) q});
	like($err, qr/a column of context "broken" does not exist any more/,
		"what was broken is broken, $format");
	# The restored context follows its table.
	$node->safe_psql($format, q{INSERT INTO "Odd schema"."T.able"
		VALUES (41, 0.5, 'shine', '2024-02-20', 3)});
	isnt($node->safe_psql($format, $answers), $before{$answers}, "new rows are read, $format");
	$node->safe_psql($format, q{DELETE FROM "Odd schema"."T.able" WHERE id = 41});
	is($node->safe_psql($format, $answers), $before{$answers}, "deleted ones are not, $format");
	$node->safe_psql($format, q{DROP SCHEMA "Odd schema" CASCADE});
	is($node->safe_psql($format, 'SELECT name FROM posterior.contexts'), 'broken',
			"a dropped table takes its contexts along, $format");
	$node->safe_psql($format,
			q{SELECT posterior.alter_context('broken', filter => '', order_by => 'id',
				features => '{id}')});
	is($node->safe_psql($format, q{INSERT INTO broken SELECT i, i FROM generate_series(1, 9) i;
				SELECT posterior.warm_context('broken')}), '9', "repaired, $format");
}

# A dump of a restored dump is the same.
$node->safe_psql('postgres', 'CREATE DATABASE again');
my $one = $node->data_dir . '/../one.sql';
my $two = $node->data_dir . '/../two.sql';
$node->command_ok([ 'pg_dump', '-t', 'posterior.context_definition', '--data-only', '-f', $one,
	'-d', $node->connstr('postgres') ], 'the definitions alone');
my $all = $node->data_dir . '/../dump.plain';
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $all, '-d',
	$node->connstr('again') ], 'restored once more');
$node->command_ok([ 'pg_dump', '-t', 'posterior.context_definition', '--data-only', '-f', $two,
	'-d', $node->connstr('again') ], 'and dumped');
my @lines = map { join("\n", grep { !/^\\(un)?restrict/ } split(/\n/, slurp_file($_))) } $one, $two;
is($lines[1], $lines[0], 'the same bytes');
like($lines[0], qr/"Odd schema"\."T\.able" WHERE/, 'filters name their relation');

# Where a dump cannot be restored in full, the contexts that miss something are broken, and no
# others.
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE kept (id int PRIMARY KEY, k int, y int);
	CREATE TABLE "left out" (id int PRIMARY KEY, k int, y int);
	INSERT INTO kept SELECT i, i % 7, i FROM generate_series(1, 30) i;
	INSERT INTO "left out" SELECT id, k, y FROM kept;
	SELECT posterior.create_context('whole', 'kept', 'y', '{id}', filter => 'id > 3');
	SELECT posterior.create_context('changed', 'kept', 'y', '{id}', filter => 'k > 3');
	SELECT posterior.create_context('left', '"left out"', 'y');
	SELECT posterior.create_context('left filtered', '"left out"', 'y', '{id}', filter => 'k > 3');
	ALTER TABLE kept ALTER k TYPE text;
});
my $answer = q{SELECT posterior.predict('whole', q) FROM (SELECT 40 AS id) q};
my $whole = $node->safe_psql('source', $answer);
my $rows = q{SELECT name, relation, target, features, order_by, filter FROM posterior.contexts
		ORDER BY name};
my $file = $node->data_dir . '/../source.dump';

$node->safe_psql('postgres', 'CREATE DATABASE retyped');
$node->command_ok([ 'pg_dump', '-Fc', '-f', $file, '-d', $node->connstr('source') ],
	'pg_dump, a filter whose column has another type');
$node->command_ok([ 'pg_restore', '-e', '-d', $node->connstr('retyped'), $file ], 'restore');
is($node->safe_psql('retyped', $rows), join("\n",
	'changed|kept|y|{id}|id|public.kept WHERE (k > 3)', 'left|"left out"|y|{id,k}|id|',
		'left filtered|"left out"|y|{id}|id|(k > 3)', 'whole|kept|y|{id}|id|(id > 3)'),
	'all contexts are there');
is($node->safe_psql('retyped', $answer), $whole, 'the whole one answers');
is($node->safe_psql('retyped', q{SELECT posterior.warm_context('left'),
			posterior.warm_context('left filtered')}), '30|12', 'so do those of the other table');
($status, $out, $err) = $node->psql('retyped', q{SELECT posterior.warm_context('changed')});
my $filter = 'DETAIL:  It is kept as it was written: public.kept WHERE (k > 3).';
like($err, qr/the filter of context "changed" could not be read when the context was restored
\Q$filter\E
HINT:  .*alter_context.*drop_context/,
	'the broken one says so');
$node->command_ok([ 'pg_dump', '-t', 'posterior.context_definition', '--data-only', '-f', $one,
	'-d', $node->connstr('source') ], 'the definitions of the source');
$node->command_ok([ 'pg_dump', '-t', 'posterior.context_definition', '--data-only', '-f', $two,
	'-d', $node->connstr('retyped') ], 'and those restored');
@lines = map { join("\n", grep { !/^\\(un)?restrict/ } split(/\n/, slurp_file($_))) } $one, $two;
is($lines[1], $lines[0], 'the same bytes, also of what cannot be read');
$node->safe_psql('retyped', q{SELECT posterior.alter_context('changed', filter => 'k > ''3''')});
is($node->safe_psql('retyped', q{SELECT posterior.warm_context('changed')}), '12', 'repaired');

$node->safe_psql('postgres', 'CREATE DATABASE partial');
$node->command_ok([ 'pg_dump', '-Fc', '-T', '"left out"', '-f', $file, '-d',
	$node->connstr('source') ], 'pg_dump without a table');
$node->command_ok([ 'pg_restore', '-e', '-d', $node->connstr('partial'), $file ], 'restore');
is($node->safe_psql('partial', $rows), join("\n",
	'changed|kept|y|{id}|id|public.kept WHERE (k > 3)', 'left|-||{NULL,NULL}||',
		'left filtered|-||{NULL}||public."left out" WHERE (k > 3)',
		'whole|kept|y|{id}|id|(id > 3)'),
	'all contexts are there');
is($node->safe_psql('partial', $answer), $whole, 'the whole one answers');
for my $name ('left', 'left filtered')
{
	($status, $out, $err) = $node->psql('partial', qq{SELECT posterior.warm_context('$name')});
	like($err,
		qr/the relation of context "$name" does not exist any more\nDETAIL:  .*\nHINT:  .*drop_con/,
		"\"$name\" says that its relation is missing");
	($status, $out, $err) = $node->psql('partial',
			qq{SELECT posterior.alter_context('$name', target => 'y')});
	like($err, qr/the relation of context "$name" does not exist any more/,
		'and cannot be given columns');
}
$node->command_ok([ 'pg_dump', '-t', 'posterior.context_definition', '--data-only', '-f', $two,
	'-d', $node->connstr('partial') ], 'dumped again');
like(slurp_file($two), qr/^left filtered\t.*\tpublic\."left out" WHERE \(k > 3\)\t/m,
	'the text of its filter is written again');
is($node->safe_psql('partial', q{SELECT count(posterior.drop_context(name)) FROM posterior.contexts
			WHERE name LIKE 'left%'}), '2', 'dropped');
is($node->safe_psql('partial', $rows),
	join("\n", 'changed|kept|y|{id}|id|public.kept WHERE (k > 3)', 'whole|kept|y|{id}|id|(id > 3)'),
	'and gone');

# A missing owner is replaced by the restoring role.
$node->safe_psql('source', q{
	CREATE ROLE "Gone before";
	CREATE ROLE "Gone after";
	GRANT SELECT ON kept TO "Gone before", "Gone after";
	SET ROLE "Gone before";
	SELECT posterior.create_context('before', 'kept', 'y', '{id}', maintain => 'read');
	SET ROLE "Gone after";
	SELECT posterior.create_context('after', 'kept', 'y', '{id}', maintain => 'read');
	RESET ROLE;
	DROP OWNED BY "Gone before";
	DROP ROLE "Gone before";
});
my $owners = q{SELECT name, owner FROM posterior.context_definition ORDER BY name};
is($node->safe_psql('source', $owners),
		join("\n", 'after|"Gone after"', 'before|-',
			map { "$_|" . $node->safe_psql('source',
			'SELECT quote_ident(current_user)') } 'changed', 'left', 'left filtered',
			'whole'), 'owners');
$node->safe_psql('postgres', 'CREATE DATABASE owners');
$node->command_ok([ 'pg_dump', '-Fc', '-f', $file, '-d', $node->connstr('source') ],
	'pg_dump of contexts of other owners');
$node->safe_psql('source', q{SELECT posterior.drop_context('after'),
			posterior.drop_context('before'); DROP OWNED BY "Gone after"; DROP ROLE "Gone after"});
$node->command_ok([ 'pg_restore', '-x', '-e', '-d', $node->connstr('owners'), $file ],
	'restore without them');
is($node->safe_psql('owners',
			q{SELECT count(*), bool_and(owner::regrole::text = quote_ident(current_user))
			FROM posterior.context_definition}), '6|t', 'all contexts are there');
is($node->safe_psql('owners', q{SELECT posterior.warm_context('after'),
			posterior.warm_context('before')}), '30|30', 'and work');

# The definitions alone, where columns are missing.
$node->safe_psql('postgres', 'CREATE DATABASE columns');
$node->safe_psql('columns', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE kept (id int PRIMARY KEY, y int);
	CREATE TABLE "left out" (id int PRIMARY KEY, y int);
	INSERT INTO kept SELECT i, i FROM generate_series(1, 30) i;
});
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $one, '-d',
	$node->connstr('columns') ], 'definitions restored where columns are missing');
is($node->safe_psql('columns', $rows), join("\n",
	'changed|kept|y|{id}|id|public.kept WHERE (k > 3)', 'left|"left out"|y|{id,NULL}|id|',
		'left filtered|"left out"|y|{id}|id|public."left out" WHERE (k > 3)',
		'whole|kept|y|{id}|id|(id > 3)'),
	'all contexts are there');
is($node->safe_psql('columns', $answer), $whole, 'the whole one answers');
($status, $out, $err) = $node->psql('columns', q{SELECT posterior.warm_context('left')});
like($err, qr/a column of context "left" does not exist any more/,
	'a missing column is one that is gone');

# Several targets are columns, whatever their numbers and names are by then.
{
	my $models = $ENV{TEST_MODELS};
	my $pairs = q{SELECT target, features, order_by, maintain FROM posterior.contexts};
	my $said = q{SELECT posterior.predict_targets('pairs'::name, q)
		FROM (SELECT 0.3::float8 AS a, 0.1::float8 AS b) q};

	$node->safe_psql('postgres', "CREATE DATABASE $_") for 'several', 'fewer', 'others';
	$node->safe_psql('several', qq{
		CREATE EXTENSION pg_posterior;
		SELECT posterior.load_model('several', '$models/several_fixed.safetensors');
		CREATE TABLE pairs (gone int, b float8, id int PRIMARY KEY, v float8, a float8, w numeric);
		ALTER TABLE pairs DROP COLUMN gone;
		INSERT INTO pairs SELECT sin(i), i, cos(i), sin(2 * i), i / 7.0
			FROM generate_series(1, 40) i;
		SELECT posterior.create_context('pairs', 'pairs', '{w,v}', '{a,b}', order_by => 'id',
			model => 'several');
		ALTER TABLE pairs RENAME COLUMN v TO "u,{v}";
	});
	my $answer = $node->safe_psql('several', $said);
	$node->command_ok([ 'pg_dump', '-Fc', '-f', $file, '-d', $node->connstr('several') ],
		'pg_dump, several targets');
	$node->command_ok([ 'pg_restore', '-e', '-d', $node->connstr('fewer'), $file ], 'restore');
	is($node->safe_psql('fewer', $pairs), '{w,"u,{v}"}|{a,b}|id|trigger', 'several targets');
	is($node->safe_psql('fewer', $said), $answer, 'and their answer');
	$node->safe_psql('fewer', q{INSERT INTO pairs VALUES (0, 41, 3, 1, 1)});
	isnt($node->safe_psql('fewer', $said), $answer, 'a new row is read');
	$node->safe_psql('fewer', q{DELETE FROM pairs WHERE id = 41});
	is($node->safe_psql('fewer', $said), $answer, 'and a deleted one is not');

	# one of them is missing where the definitions are restored
	$node->command_ok([ 'pg_dump', '-t', 'posterior.context_definition', '--data-only', '-f', $one,
		'-d', $node->connstr('several') ], 'the definitions alone');
	$node->safe_psql('others', qq{
		CREATE EXTENSION pg_posterior;
		SELECT posterior.load_model('several', '$models/several_fixed.safetensors');
		CREATE TABLE pairs (id int PRIMARY KEY, a float8, b float8, w numeric);
		INSERT INTO pairs SELECT i, cos(i), sin(i), i FROM generate_series(1, 40) i;
	});
	$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $one, '-d',
		$node->connstr('others') ], 'restored where a target is missing');
	is($node->safe_psql('others', $pairs), '{w,NULL}|{a,b}|id|trigger', 'it shows');
	($status, $out, $err) = $node->psql('others', $said);
	like($err, qr/a column of context "pairs" does not exist any more\nDETAIL:  It was target 2/,
		'and is named');
	$node->safe_psql('others', q{ALTER TABLE pairs ADD v float8 DEFAULT 0.5;
		SELECT posterior.alter_context('pairs', target => '{w,v}')});
	is($node->safe_psql('others', q{SELECT posterior.warm_context('pairs')}), '40', 'repaired');
}

# Dumps by roles that are no superusers: definitions are readable by the database's owner and by
# roles that may read all data.
{
	$node->safe_psql('postgres', q{
		CREATE ROLE dba LOGIN;
		CREATE ROLE reader LOGIN IN ROLE pg_read_all_data;
		CREATE ROLE user_of_it LOGIN;
		CREATE DATABASE owned OWNER dba;
		CREATE DATABASE moved;
	});
	$node->safe_psql('owned', 'CREATE EXTENSION pg_posterior');
	$node->safe_psql('owned', q{
		CREATE SCHEMA own;
		CREATE TABLE own.t (id int PRIMARY KEY, y int);
		INSERT INTO own.t SELECT i, i FROM generate_series(1, 30) i;
		SELECT posterior.create_context('owned', 'own.t', 'y', '{id}', filter => 'id > 3');
		SELECT posterior.refresh_context('owned');
	}, extra_params => [ '-U', 'dba' ]);
	for my $role ('dba', 'reader')
	{
		my $moved = $node->data_dir . "/../$role.dump";
		$node->command_ok([ 'pg_dump', '-U', $role, '-Fc', '-f', $moved, '-d',
			$node->connstr('owned') ], "pg_dump by $role");
		$node->safe_psql('moved',
			'DROP EXTENSION IF EXISTS pg_posterior CASCADE; DROP SCHEMA IF EXISTS own,
			posterior CASCADE');
		$node->command_ok([ 'pg_restore', '-e', '-d', $node->connstr('moved'), $moved ], 'restore');
		is($node->safe_psql('moved',
					'SELECT name, owner, filter, refreshed_rows FROM posterior.contexts'),
				'owned|dba|(id > 3)|27', 'with the context');
	}
	$node->command_fails_like([ 'pg_dump', '-U', 'user_of_it', '-f', $file, '-d',
		$node->connstr('owned') ], qr/permission denied/, 'not by any user');
	is($node->safe_psql('moved',
				q{SELECT has_table_privilege('user_of_it', 'posterior.context_definition',
				'SELECT')}), 'f', 'nor after a restore');
}

$node->stop;
done_testing();
