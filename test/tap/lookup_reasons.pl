# Debug lines that say why rows were read or encoded, and a backend's progress in stat_progress.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('why');
$node->init;
$node->append_conf('postgresql.conf', qq{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = -1
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t (i int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, y float8, x float8);
	INSERT INTO t (y, x) SELECT sin(i * 0.1), i * 0.01 FROM generate_series(1, 130) i;
	SELECT posterior.create_context('t', 't', 'y', features => '{x}', order_by => 'i',
			model => 'toy');
	SELECT posterior.create_context('read', 't', 'y', features => '{x}', order_by => 'i',
			model => 'toy', maintain => 'read');
	CREATE TABLE secret (LIKE t INCLUDING ALL);
	INSERT INTO secret (y, x) SELECT y, x FROM t;
	SELECT posterior.create_context('secret', 'secret', 'y', features => '{x}', order_by => 'i',
			model => 'toy');
	CREATE ROLE reader;
	GRANT SELECT ON secret TO reader;
	CREATE POLICY odd ON secret USING (i % 2 = 1);
	ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
	-- a relation whose first row waits for a lock
	CREATE VIEW slow AS SELECT y, x, i FROM t WHERE pg_advisory_xact_lock_shared(7) IS NOT NULL;
	SELECT posterior.create_context('slow', 'slow', 'y', features => '{x}', order_by => 'i',
			model => 'toy');
});

# What the debug lines say about a prediction with this context after these statements: the reason
# for reading rows, and whether they were encoded.
sub told
{
	my ($context, $statements) = @_;
	my $err = '';
	$node->psql('postgres', "BEGIN; $statements; SET LOCAL client_min_messages = debug1;
				SELECT posterior.predict($context, r) FROM (SELECT 0.3::float8 AS x) r;
				ROLLBACK", stderr => \$err);
	my @told;
	push @told, $1 if $err =~ /rows are read because (.*)/;
	push @told, 'encoded'
		if $err =~ /rows are encoded because no kept encoding begins with the same/;
	push @told, "not kept: $1" if $err =~ /is not kept because (.*)/;
	push @told, 'error' if $err =~ /ERROR/;
	return join('; ', @told);
}

is(told("'t'", 'SELECT'), 'there is no proof yet; encoded', 'the first reader');
is(told("'t'", 'SELECT'), '', 'the second');
$node->safe_psql('postgres', 'UPDATE t SET y = 1 WHERE i = 130');
is(told("'t'", 'SELECT'), 'rows have changed', 'after an UPDATE of the last row');
$node->safe_psql('postgres', 'UPDATE t SET y = 1 WHERE i = 1');
is(told("'t'", 'SELECT'), 'rows have changed; encoded', 'after an UPDATE of the first');
is(told("'t'", 'DELETE FROM t WHERE i = 3'),
	'this transaction has written the table; not kept: others may not see all of its rows',
	'own changes');
is(told("'t'", 'SET LOCAL posterior.cache = off'), 'posterior.cache is off', 'without the cache');
is(told("'t'", 'SET TRANSACTION ISOLATION LEVEL SERIALIZABLE'),
	'serializable transactions must be seen reading', 'in a serializable transaction');
is(told("'read'", 'SELECT'), 'it is not maintained by triggers; encoded', 'a context that is read');
is(told("'secret'", 'SET LOCAL ROLE reader'), 'error', 'policies refuse');
is(told("'secret'", "SET LOCAL posterior.row_security = private; SET LOCAL ROLE reader"),
	'policies decide which of them the reader sees; not kept: others may not see all of its rows',
		'or make it private');
sub told_of_value
{
	my $err = '';
	$node->psql('postgres', 'SET client_min_messages = debug1;
				SELECT posterior.predict((SELECT posterior.context(y, x ORDER BY i) FROM t),
				0.5)', stderr => \$err);
	return $err =~ /(\d+) rows are encoded because no kept encoding begins with the same (\d+)/
		? "$1 $2" : '';
}
# A model that goes on has another key with every row; an entry of fewer rows is of use.
$node->safe_psql('postgres', "SELECT posterior.load_model('latent',
		'$ENV{TEST_MODELS}/latent.safetensors')");
$node->safe_psql('postgres', q{
	CREATE TABLE l AS SELECT i, sin(i * 0.1) AS y, i * 0.01 AS a, cos(i) AS b
		FROM generate_series(1, 600) i;
	SELECT posterior.create_context('l', 'l', 'y', features => '{a,b}', order_by => 'i',
			model => 'latent');
});
sub told_of_latents
{
	my ($statements) = @_;
	my $err = '';
	$node->psql('postgres', "$statements; SET client_min_messages = debug1;
				SELECT posterior.predict('l', r) FROM (SELECT 0.3 AS a, 0.2 AS b) r",
				stderr => \$err);
	return $err =~ /(\d+) rows are encoded because no kept encoding begins with the same \d+(.*)/
		? "$1$2" : '';
}
is(told_of_latents('SELECT'), '600', 'latents begin');
is(told_of_latents('INSERT INTO l VALUES (601, 0, 0, 0)'), '601; another one spares a part',
	'and go on with a row more');
is(told_of_latents('DELETE FROM l WHERE i > 576'), '576; another one spares a part',
	'with fewer rows behind the last whole block');
is(told_of_latents('DELETE FROM l WHERE i = 576'), '575', 'not with a row less in it');
is(told_of_latents('INSERT INTO l VALUES (576, 0, 0, 0)'), '576; another one spares a part',
	'from the one that was used last');
is(told_of_latents('DELETE FROM l WHERE i > 200'), '200', 'few rows are encoded at once');
is(told_of_value(), '130 130', 'a context value');
is(told_of_value(), '', 'the same value again');

# Start psql with one statement in the background.
sub in_background
{
	my ($statement) = @_;

	return IPC::Run::start([ 'psql', '-XqAt', '-d', $node->connstr('postgres'), '-c', $statement ],
		'<', '/dev/null', '>', '/dev/null', '2>', '/dev/null');
}

# Progress.
my $progress = 'SELECT name, phase, done FROM posterior.stat_progress';
is($node->safe_psql('postgres', $progress), '', 'no backend reads');
my $holder = in_background('SELECT pg_advisory_lock(7), pg_sleep(600)');
my $locks = 'SELECT count(*) = 1 FROM pg_locks WHERE locktype = \'advisory\' AND';
$node->poll_query_until('postgres', "$locks granted") or die 'the lock is not taken';
my $reader = in_background("SELECT posterior.predict('slow', r) FROM (SELECT 0.3::float8 AS x) r");
$node->poll_query_until('postgres', "$locks NOT granted") or die 'the reader does not wait';
is($node->safe_psql('postgres', $progress), 'slow|reading rows|0', 'a reader that waits');
my $both = 'SELECT (SELECT count(*) FROM posterior.stat_progress),
		(SELECT count(*) FROM posterior_internal.progress())';
is($node->safe_psql('postgres', $both), '1|1', 'by the view and by the function');
is($node->safe_psql('postgres', "CREATE ROLE stranger; SET ROLE stranger; $both"), '0|0',
		'nor for roles that may not read the rows');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE query LIKE '%pg_sleep(600)' AND pid <> pg_backend_pid()");
$reader->finish;
$holder->finish;
is($node->safe_psql('postgres', $progress), '', 'no backend reads any more');

# A cache without room.
$node->append_conf('postgresql.conf', "posterior.cache_size = '1MB'\n");
$node->restart;
$node->safe_psql('postgres', 'INSERT INTO t (y, x) SELECT i, i FROM generate_series(1, 3000) i');
is(told("'t'", 'SELECT'), 'there is no proof yet; not kept: the cache has no room for it',
		'a cache that is too small');

my $notice = '';
$node->psql('postgres', q{SELECT posterior.warm_context('t')}, stderr => \$notice);
like($notice, qr/NOTICE:  the encoding of context "t" is larger than the cache and not kept
DETAIL:  .*
HINT:  Raise posterior.cache_size/, 'warm_context() gives a NOTICE');
# A worker does not encode it ahead: of two contexts that an INSERT has changed, only the small one.
$node->safe_psql('postgres', q{
	CREATE TABLE small (i int PRIMARY KEY, y float8, x float8);
	INSERT INTO small SELECT i, i, i FROM generate_series(1, 20) i;
	SELECT posterior.create_context('small', 'small', 'y', features => '{x}', model => 'toy');
	SELECT posterior.warm_context('small');
	ALTER SYSTEM SET posterior.maintenance_delay = 0;
	SELECT pg_reload_conf();
});
my $counts = q{SELECT string_agg(reads + extensions + rebuilds + deltas + private || '', ' '
			ORDER BY name) FROM posterior.stat_contexts WHERE name IN ('small', 't')};
my ($small, $large) = split / /, $node->safe_psql('postgres', $counts);
$node->safe_psql('postgres', 'INSERT INTO t (y, x) VALUES (1, 1)');
# After the second change the worker has certainly run.
for my $i (1, 2)
{
	$node->safe_psql('postgres', "INSERT INTO small VALUES (20 + $i, 1, 1)");
	$node->poll_query_until('postgres',
			"SELECT split_part(c, ' ', 1)::int >= $small + $i FROM ($counts) s (c)")
		or die 'the worker does nothing';
}
is((split / /, $node->safe_psql('postgres', $counts))[1], $large, 'and no worker encodes it ahead');

# The library is not preloaded.
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = ''\nposterior.cache_size = '16MB'\n");
$node->restart;
is(told("'t'", 'SELECT'), 'the library is not preloaded; encoded', 'without preloading');
my $err = '';
$node->psql('postgres', "SET client_min_messages = debug1; SELECT posterior.predict('t', r)
			FROM (SELECT 0.3::float8 AS x) r", stderr => \$err);
like($err, qr/HINT:  With pg_posterior in shared_preload_libraries all sessions share encodings/,
	'a HINT says what preloading gives');
$node->psql('postgres', "SELECT posterior.predict('t', r) FROM (SELECT 0.3::float8 AS x) r",
		stderr => \$err);
is($err, '', 'only at debug1');
$node->stop;
done_testing();
