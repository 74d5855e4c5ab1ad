# The background worker reads a table with the rights of the table's owner, not of the context's:
# reading can run the owner's functions.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('worker_rights');
$node->init;
# No maintenance before the table is set up.
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = -1
});
$node->start;
# Functions of the owner must run with the owner's rights only.
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE ROLE mallory LOGIN;
	GRANT CREATE ON SCHEMA public TO mallory;
	SET ROLE mallory;
	CREATE FUNCTION trap(float8) RETURNS float8 IMMUTABLE LANGUAGE plpgsql AS $$
		BEGIN RAISE LOG 'trap runs as %', current_user; RETURN $1; END $$;
	CREATE TABLE t (i int, x float8, y float8);
	INSERT INTO t SELECT i, i, i FROM generate_series(1, 20) i;
	CREATE TABLE v AS TABLE t;
	CREATE TABLE last AS TABLE t;
	RESET ROLE;
	SELECT posterior.create_context(r, r::regclass, 'y', features => '{x}', order_by => 'i',
			model => 'tabular_small') FROM unnest('{t,v,last}'::text[]) r;
	SELECT posterior.warm_context(r) FROM unnest('{t,v,last}'::text[]) r;
});

sub encode_ahead
{
	my ($rows) = @_;
	my $begin = -s $node->logfile;
	# The worker takes contexts in the order of their creation.
	$node->safe_psql('postgres', q{INSERT INTO last VALUES (100, 1, 1)});
	$node->append_conf('postgresql.conf', 'posterior.maintenance_delay = 10');
	$node->reload;
	$node->poll_query_until('postgres',
			"SELECT rows = $rows FROM posterior.stat_contexts WHERE name = 'last'")
		or die 'nothing was encoded ahead';
	$node->append_conf('postgresql.conf', 'posterior.maintenance_delay = -1');
	$node->reload;
	return substr(slurp_file($node->logfile), $begin);
}

# Constants in an index's condition are computed when a query is planned.
$node->safe_psql('postgres', q{SET ROLE mallory; CREATE INDEX ON t (x) WHERE trap(1) < x;
			INSERT INTO t VALUES (21, 1, 1)});
my $log = encode_ahead(21);
is($node->safe_psql('postgres', q{SELECT rows FROM posterior.stat_contexts WHERE name = 't'}), '21',
		'the table is encoded ahead');
like($log, qr/trap runs as mallory/, 'as its owner');
unlike($log, qr/trap runs as (?!mallory)/, 'and as no other role');

SKIP:
{
	skip 'tables do not become views', 1 if $node->pg_version >= 16;
	# Between the write and the worker.
	$node->safe_psql('postgres', q{INSERT INTO v VALUES (21, 1, 1)});
	$node->safe_psql('postgres', qq{SET ROLE mallory; $_})
		for (map { "DROP TRIGGER posterior_note_$_ ON v" } 'insert', 'statement', 'change'),
		'TRUNCATE v', 'VACUUM v',
		'CREATE RULE "_RETURN" AS ON SELECT TO v DO INSTEAD SELECT i, trap(i * random()) AS x,
				i::float8 AS y FROM generate_series(1, 20) i';
	unlike(encode_ahead(22), qr/trap runs as/, 'what has become a view is not read');
}
$node->stop;
done_testing();
