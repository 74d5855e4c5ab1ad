# A transaction's own rows are appended to the shared encoding without reading the table, as long as
# they are few, all known, and come last. Triggers can predict for the row that fires them.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('own_rows');
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
	SELECT posterior.warm_context('t');
});

# Whether, in a transaction after these statements, one prediction reads no rows, passes through the
# model together with new rows, two predictions of one statement read none, and all are right.
sub asked
{
	my ($statements) = @_;
	my ($out, $err) = ('', '');
	my $two = q{SELECT posterior.mean(posterior.predict('t', r))
			FROM (VALUES (0.3::float8), (0.7)) r (x);};
	$node->psql('postgres', qq{
		BEGIN;
		SET LOCAL client_min_messages = warning;
		$statements
		SET LOCAL client_min_messages = debug1;
		SELECT posterior.mean(posterior.predict('t', r)) FROM (SELECT 0.3::float8 AS x) r;
		DO \$\$ BEGIN RAISE DEBUG 'second statement'; END \$\$;
		$two
		SET LOCAL client_min_messages = warning;
		SET LOCAL posterior.cache = off;
		$two
		ROLLBACK;
	}, stdout => \$out, stderr => \$err);
	my ($one, $both) = split /DEBUG:  second statement/, $err;
	my @answers = split /\n/, $out;
	my $right = @answers == 5 && $answers[0] eq $answers[3] && $answers[1] eq $answers[3]
		&& $answers[2] eq $answers[4];
	return join(' ', map { $_ ? 1 : 0 } scalar($one !~ /rows are read/),
		scalar($one =~ /went through the model together/),
		scalar($both !~ /rows are read/), $right);
}

my $insert = 'INSERT INTO t (y, x) VALUES (0.5, 0.7);';
is(asked(''), '1 0 1 1', 'a transaction that has written nothing');
is(asked($insert), '1 1 1 1', 'one that has inserted a row');
is(asked("$insert SAVEPOINT a; $insert RELEASE a; $insert"), '1 1 1 1', 'several');
is(asked('LOCK TABLE t IN ROW EXCLUSIVE MODE;'), '1 0 1 1', 'none, with a lock');
is(asked("LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE; $insert"), '0 0 0 1',
	'one, and the table may have been changed');
is(asked('INSERT INTO t (y, x) SELECT 0.5, j FROM generate_series(1, 64) j;'), '1 1 1 1',
		'as many as are remembered');
is(asked('INSERT INTO t (y, x) SELECT 0.5, j FROM generate_series(1, 65) j;'), '0 0 0 1', 'more');
is(asked("SAVEPOINT a; $insert ROLLBACK TO a;"), '1 0 1 1',
	'none that was not rolled back, and the lock is gone as well');
is(asked("$insert SAVEPOINT a; $insert ROLLBACK TO a;"), '0 0 0 1',
	'one, and one that was rolled back');
is(asked("$insert UPDATE t SET y = 0 WHERE i = 1;"), '0 0 0 1', 'a changed row as well');
is(asked('DELETE FROM t WHERE i = 1;'), '0 0 0 1', 'a deleted row');
is(asked('INSERT INTO t (i, y, x) OVERRIDING SYSTEM VALUE VALUES (-1, 0.5, 0.7);'), '0 0 0 1',
	'one that does not come last');
is(asked("SET LOCAL track_counts = off; $insert"), '0 0 0 1',
	'one that the server has not counted');
is(asked("SET LOCAL track_counts = off; $insert SET LOCAL track_counts = on; $insert"), '0 0 0 1',
	'one of two');

# Other transactions have inserted, too; their rows are published, and own rows are not.
$node->safe_psql('postgres', $insert);
is(asked($insert), '1 1 1 1', 'after a row of another transaction');
is(asked(''), '1 0 1 1', 'whose row alone is in the cache');

# A trigger predicts for the row that fires it, after the trigger that records the row.
$node->safe_psql('postgres', q{
	CREATE TABLE said (i int, mean float8);
	CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO said SELECT NEW.i, posterior.mean(posterior.predict('t', r))
			FROM (SELECT NEW.x) r;
		RETURN NULL;
	END $$;
	CREATE TRIGGER say AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION say();
});
my $err = '';
$node->psql('postgres', "SET client_min_messages = debug1; $insert", stderr => \$err);
like($err, qr/rows are read because rows have changed/,
	'after a change of the table the rows are read');
$node->psql('postgres', "SET client_min_messages = debug1; $insert", stderr => \$err);
unlike($err, qr/rows are read/,
	'and then a trigger needs no read: the rows of others are in the cache');
is($node->safe_psql('postgres', q{
	SET posterior.cache = off;
	SELECT mean = (SELECT posterior.mean(posterior.predict('t', r))
			FROM (SELECT 0.7::float8 AS x) r) FROM said ORDER BY i DESC LIMIT 1}), 't',
		'and gets the right answer');

# Labels: a new one makes another context.
$node->safe_psql('postgres', q{
	CREATE TABLE l (i int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, y text, x float8);
	INSERT INTO l (y, x) SELECT chr(97 + j % 3), j % 3 + j * 0.01 FROM generate_series(1, 130) j;
	SELECT posterior.create_context('l', 'l', 'y', features => '{x}', order_by => 'i',
			model => 'tabular_class');
	SELECT posterior.warm_context('l');
});
for my $label ('a', 'd')
{
	my ($out, $err) = ('', '');
	my $ask = q{SELECT posterior.predict('l', r) FROM (SELECT 0.3::float8 AS x) r;};
	$node->psql('postgres', qq{
		BEGIN;
		INSERT INTO l (y, x) VALUES ('$label', 0.2);
		SET LOCAL client_min_messages = debug1;
		$ask
		SET LOCAL client_min_messages = warning;
		SET LOCAL posterior.cache = off;
		$ask
		ROLLBACK;
	}, stdout => \$out, stderr => \$err);
	my @answers = split /\n/, $out;
	is(join(' ', $err =~ /rows are read/ ? 1 : 0, $answers[0] eq $answers[1] ? 1 : 0),
		($label eq 'a' ? '0 1' : '1 1'), "a row with label $label");
}

$node->stop;
done_testing();
