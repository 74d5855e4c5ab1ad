# A session that has parsed a model for itself, because the cache had no room for it, uses what
# others have encoded by the model in shared memory, but keeps nothing that refers to that model:
# it may give way before the session has answered.
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

my $models = $ENV{TRAINED_MODELS};
my $node = PostgreSQL::Test::Cluster->new('models');
$node->init;
# Room for one of the two models at a time.
$node->append_conf('postgresql.conf', qq{
	shared_preload_libraries = 'pg_posterior'
	posterior.cache_size = '7MB'
	posterior.device = cpu
	posterior.maintenance_delay = -1
	posterior.batch_calls = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t AS SELECT i, sin(i * 1.3) AS x, sin(i) AS y FROM generate_series(1, 600) i;
	ALTER TABLE t ADD PRIMARY KEY (i);
	SELECT posterior.create_context('large', 't', 'y', features => '{x}', order_by => 'i');
});
sub cache { return $node->safe_psql('postgres', "SELECT $_[0] FROM posterior.stat_cache()") }

# A cursor holds an encoding of the large model, and so the model.
my $hold = q{BEGIN; DECLARE held CURSOR FOR SELECT posterior.predict('large', q)
	FROM generate_series(1, 9) i, LATERAL (SELECT i::float8 AS x) q; FETCH 1 FROM held};

for my $model ('lbanp', 'tnpd', 'inctnp_seq')
{
	my $file = "$models/$model.safetensors";
	$node->safe_psql('postgres', "SELECT posterior.load_model('$model', '$file');
		SELECT posterior.create_context('$model', 't', 'y', features => '{x}', order_by => 'i',
			model => '$model')");
	my $one = "SELECT posterior.predict('$model', q) FROM (SELECT 0.1::float8 AS x) q";
	# Draws of which each row is asked behind those before it.
	my $asked = "SELECT s.y FROM generate_series(1, 100) i, posterior.sample('$model',
		ARRAY[jsonb_build_object('x', i / 100.0), '{\"x\": 0.2}'], 2, i) s";
	# Own rows, also behind an entry that the transaction has read.
	for my $row ('own', 'later', 'committed')
	{
		my ($holder, $reader, $other) = map { session($node) } 1 .. 3;
		my $key = {own => 1001, later => 1002, committed => 1003}->{$row};
		my $title = "$model, $row row";

		like(ask($holder, $hold), qr/mixture|bars/, "$title: a large model is held");
		my $private = cache('private');
		ask($reader, $one);
		is(cache('private'), $private + 1, "$title: there is no room for the model");
		ask($holder, 'ROLLBACK');
		ask($other, $one);
		is(cache('private'), $private + 1, "$title: then there is, for another session");
		$node->safe_psql('postgres', "INSERT INTO t VALUES ($key, 0, 0)") if $row eq 'committed';
		ask($reader, 'BEGIN');
		ask($reader, $one) if $row eq 'later';
		ask($reader, "INSERT INTO t VALUES ($key, 0, 0)") if $row ne 'committed';
		my $first = ask($reader, "DECLARE answers CURSOR FOR $asked; FETCH 1 FROM answers");
		leave($other);
		ask($holder, $hold);
		my $answers = $first . "\n" . ask($reader, 'FETCH ALL FROM answers');
		ask($reader, 'SET LOCAL posterior.cache = off');
		is($answers, ask($reader, $asked),
			"$title: answers do not depend on what has given way since then");
		ask($holder, 'ROLLBACK');
		ask($reader, 'ROLLBACK');
		leave($_) for $holder, $reader;
	}
	$node->safe_psql('postgres', "SELECT posterior.drop_context('$model');
		SELECT posterior.drop_model('$model');
		DELETE FROM t WHERE i > 1000");
}
$node->stop;
done_testing();
