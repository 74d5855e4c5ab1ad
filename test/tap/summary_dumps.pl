# Dumps stay exact where posterior.distribution_style = summary is set for the role, the database
# and in the environment: the library was not loaded when that was written down, so nothing refused
# it, and what reads it later ignores it with a warning. Also casts to and from jsonb, and COPY.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $kept = q{SELECT md5(string_agg(id || ' ' || posterior.distribution_send(d)::text, ','
	ORDER BY id)) FROM d};

for my $preload ('', 'pg_posterior')
{
	my $name = $preload ? 'preloaded' : 'loaded on demand';
	my $node = PostgreSQL::Test::Cluster->new('summary' . length $preload);
	$node->init;
	$node->start;
	$node->safe_psql('postgres', q{
		CREATE EXTENSION pg_posterior;
		CREATE TABLE d (id int PRIMARY KEY, d posterior.distribution);
		INSERT INTO d VALUES (1, posterior.normal(1 / 3.0, 0.1)),
			(2, posterior.mixture('{0.3,0.7}', '{-1e-30,4000.123456789}', '{50,200}')),
			(3, posterior.categorical(ARRAY['a "b"', 'c'], '{0.4,0.6}')), (4, NULL)});
	my $before = $node->safe_psql('postgres', $kept);
	$node->safe_psql('postgres', q{
		ALTER ROLE CURRENT_USER SET posterior.distribution_style = summary;
		ALTER DATABASE postgres SET posterior.distribution_style = summary});
	if ($preload)
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_posterior'\n");
		$node->restart;
	}
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_db_role_setting'), '2',
		"$name: the settings are there");
	is($node->safe_psql('postgres', 'SELECT d FROM d WHERE id = 3'),
		$node->safe_psql('postgres', 'SELECT d::text FROM d WHERE id = 3'),
		"$name: and are not followed");
	# without preloading the setting reaches the session as a name that nothing knows yet
	local $ENV{PGOPTIONS} = $preload ? '' : '-c posterior.distribution_style=summary';
	for my $how ([], ['--inserts'], ['--format=custom'])
	{
		my $file = $node->basedir . '/dump';
		my $database = 'copy' . scalar(@$how) . length($how->[0] // '');
		command_ok([ 'pg_dump', @$how, '-f', $file, '-d', $node->connstr('postgres') ],
			"$name: pg_dump @$how");
		$node->safe_psql('postgres', "CREATE DATABASE $database");
		command_ok($how->[0] && $how->[0] =~ /custom/
			? [ 'pg_restore', '--exit-on-error', '-d', $node->connstr($database), $file ]
			: [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-d',
				$node->connstr($database) ],
			"$name: restored");
		is($node->safe_psql($database, $kept), $before, "$name: every bit is the same");
	}
	my $copy = $node->basedir . '/copied';
	$node->safe_psql('postgres', qq{
		CREATE TABLE again (LIKE d);
		COPY d TO '$copy'; COPY again FROM '$copy'; COPY d TO '$copy.binary' BINARY;
		CREATE TABLE json AS SELECT id, d::jsonb AS d FROM d;
		CREATE TABLE third AS SELECT id, d::posterior.distribution FROM json});
	is($node->safe_psql('postgres', $kept =~ s/FROM d/FROM $_/r), $before, "$name: $_ is the same")
		for 'again', 'third';
	unlike($node->safe_psql('postgres', 'SELECT d FROM json'), qr/mean 0.333/,
		"$name: jsonb is full");
	# a session that asks for it itself gets it, and its COPY is full nevertheless
	like($node->safe_psql('postgres', q{SELECT posterior.kind(d) FROM d WHERE id = 1;
			SET posterior.distribution_style = summary; SELECT d FROM d WHERE id = 1}),
		qr/mean 0.333/, "$name: a session's own SET is followed");
	unlike($node->safe_psql('postgres', q{SELECT posterior.kind(d) FROM d WHERE id = 1;
			SET posterior.distribution_style = summary; COPY d TO STDOUT}),
		qr/mean 0.333/, "$name: and COPY is full");
	$node->stop;
}
done_testing();
