# The background worker serves the tables of all owners. The effects of one owner's functions on the
# worker's session reach neither the functions of other owners nor later steps of the worker.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('hostile_owner');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = -1
});
$node->start;
# Tables 1 to 3 are the attacker's, v the victim's: a superuser whose function uses operators
# without a schema.
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE ROLE mallory LOGIN;
	CREATE SCHEMA m AUTHORIZATION mallory;
	CREATE FUNCTION public.scale() RETURNS float8 IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		RAISE LOG 'scale: % under "%" with "%" in %', current_user, current_setting('search_path'),
			current_setting('m.mark', true), pg_backend_pid();
		RETURN 2::float8 * 3::float8;
	END $$;

	SET ROLE mallory;
	CREATE FUNCTION m.times(float8, float8) RETURNS float8 LANGUAGE plpgsql AS $$
	BEGIN
		IF (SELECT rolsuper FROM pg_catalog.pg_roles
				WHERE rolname OPERATOR(pg_catalog.=) current_user) THEN
			ALTER ROLE mallory SUPERUSER;
		END IF;
		RETURN $1 OPERATOR(pg_catalog.*) $2;
	END $$;
	CREATE OPERATOR m.* (LEFTARG = float8, RIGHTARG = float8, FUNCTION = m.times);
	CREATE FUNCTION m.leave_traces() RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		RAISE LOG 'trap: % under "%" with "%" in %', current_user, current_setting('search_path'),
			current_setting('m.mark', true), pg_backend_pid();
		PERFORM set_config('search_path', 'm, pg_catalog', false),
			set_config('m.mark', 'left', false), pg_advisory_lock(30);
	END $$;
	CREATE FUNCTION m.trap(x float8, fails boolean) RETURNS float8 IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM m.leave_traces();
		-- no session of this program
		IF fails AND current_setting('application_name') = '' THEN
			RAISE EXCEPTION 'nothing is read here';
		END IF;
		RETURN x;
	END $$;
	CREATE TABLE m.t1 (i int, x float8, y float8);
	INSERT INTO m.t1 SELECT i, i, i FROM generate_series(1, 20) i;
	CREATE TABLE m.t2 AS TABLE m.t1;
	CREATE TABLE m.t3 AS TABLE m.t1;
	RESET ROLE;

	CREATE TABLE v AS TABLE m.t1;
	SELECT posterior.create_context(n, r::regclass, 'y', features => '{x}', order_by => 'i',
			model => 'tabular_small')
	FROM unnest('{t1,t2,t3,v}'::text[], '{m.t1,m.t2,m.t3,v}'::text[]) u(n, r);
	SELECT posterior.warm_context(n) FROM unnest('{t1,t2,t3,v}'::text[]) n;
	CREATE INDEX ON v ((x * public.scale()));
	INSERT INTO v VALUES (21, 1, 1)});
# Constants in an index's condition are computed when a query is planned.
$node->safe_psql('postgres', qq{
	SET ROLE mallory;
	CREATE INDEX ON m.t$_ (x) WHERE m.trap(1, @{[ $_ == 2 ? 'true' : 'false' ]}) < x;
	INSERT INTO m.t$_ VALUES (21, 1, 1)}) for 1 .. 3;

my $begin = -s $node->logfile;
$node->append_conf('postgresql.conf', 'posterior.maintenance_delay = 10');
$node->reload;
ok($node->poll_query_until('postgres',
			qq{SELECT rows = 21 FROM posterior.stat_contexts WHERE name = '$_'}),
		"$_ is encoded ahead") for 't1', 't3', 'v';
is($node->safe_psql('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}), 'f',
		'the attacker is no superuser');
is($node->safe_psql('postgres', q{SELECT rows FROM posterior.stat_contexts WHERE name = 't2'}),
		'20', 'an error leaves a context to the next reader');
ok($node->poll_query_until('postgres',
			q{SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory'}),
		'locks of the session end');

my $log = substr(slurp_file($node->logfile), $begin);
my @traps = $log =~ /trap: (.*) in \d+/g;
my @scales = $log =~ /scale: (.*) in \d+/g;
cmp_ok(scalar(@traps), '>=', 3, 'all traps were sprung');
is_deeply([ grep { !/^mallory under "pg_catalog, pg_temp" with "(<NULL>)?"$/ } @traps ], [],
	'each as its owner, with a safe path, and finds no trace of the one before');
cmp_ok(scalar(@scales), '>=', 1, 'the victim\'s function has run');
is_deeply([ grep { !/^\w+ under "pg_catalog, pg_temp" with "(<NULL>)?"$/ } @scales ], [],
	'and finds none either');
my %owner;
$owner{$2}{$1} = 1 while $log =~ /(?:trap|scale): (\w+) .* in (\d+)/g;
is_deeply([ grep { keys %{ $owner{$_} } > 1 } keys %owner ], [], 'no process serves two owners');
$node->stop;
done_testing();
