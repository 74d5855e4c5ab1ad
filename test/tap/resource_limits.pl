# Limits of the operating system on a session: no threads, and amounts of memory. Each statement
# gives the right answer or an error that names the shortage, and the session goes on.
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

plan skip_all => 'no prlimit here' if system('prlimit --version > /dev/null 2>&1') != 0;

my $node = PostgreSQL::Test::Cluster->new('limits');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.cache_size = '16MB'
	posterior.maintenance_delay = -1
	posterior.model = 'tabular_small'
	posterior.threads = 4
	jit = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_posterior;
	CREATE TABLE t AS SELECT i, sin(i * 0.1) AS y, i * 0.1 AS x, cos(i * 0.3) AS z
		FROM generate_series(1, 1500) i;
	CREATE TABLE c AS SELECT posterior.context(y, x, z) AS ctx FROM t;
	CREATE TABLE n AS SELECT * FROM t WHERE i <= 1200;
	SELECT posterior.create_context('n', 'n', 'y', features => '{x,z}', order_by => 'i');
	SELECT posterior.create_context('v', 't', 'y', features => '{x,z}', order_by => 'i',
			maintain => 'read')});

my %questions = (
	'a value' => 'SELECT posterior.mean(posterior.predict(ctx, 1, 2)) FROM c',
	'a named context' => q{SELECT posterior.mean(posterior.predict('n', q))
			FROM (SELECT 1.0::float8 AS x, 2.0::float8 AS z) q},
	'a context that is read' => q{SELECT posterior.mean(posterior.predict('v', q))
			FROM (SELECT 1.0::float8 AS x, 2.0::float8 AS z) q},
	'draws' => 'SELECT sum(y) FROM c,
			posterior.sample(ctx, ARRAY(SELECT ROW(x, z) FROM t WHERE i <= 20), 100)',
	'an evidence' => 'SELECT posterior.log_evidence(y, x, z ORDER BY i) FROM t WHERE i <= 700',
	'a frame' => 'SELECT sum(posterior.mean(p))
			FROM (SELECT posterior.regress(y, x, z)
				OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS p FROM t
		WHERE i <= 500) s',
	'rows' => 'SELECT sum(posterior.mean(prediction))
			FROM c, posterior.predict_rows(ctx, ARRAY(SELECT ROW(x, z) FROM t))');
my %right = map { $_ => $node->safe_psql('postgres', $questions{$_}) } keys %questions;

# A session under a limit, an argument of prlimit computed from the session's size.
sub limited
{
	my ($limit) = @_;
	my $s = session($node);
	ask($s, "\\set VERBOSITY verbose\n");
	my $pid = ask($s, 'SELECT pg_backend_pid()');
	my ($size) = slurp_file("/proc/$pid/statm") =~ /^(\d+)/;
	system_or_bail('prlimit', "--pid=$pid", $limit->($size * 4096));
	return $s;
}

# ---- threads -------------------------------------------------------------------------------------

my $s = limited(sub { '--nproc=1' });
is(ask($s, $questions{$_}), $right{$_}, "without threads: $_") for sort keys %questions;
leave($s);

# ---- memory --------------------------------------------------------------------------------------

my ($answers, $errors) = (0, 0);
for my $more (map { $_ << 20 } 0, 1, 2, 4, 8, 12, 14, 16, 18, 20, 24, 32, 64, 128, 512)
{
	my @wrong;
	$s = limited(sub { '--as=' . ($_[0] + $more) });
	for my $question (sort keys %questions)
	{
		my $said = ask($s, $questions{$question});
		my $is_right = $said eq $right{$question};
		$answers += $is_right;
		$errors += $said =~ /^ERROR:  53200: /;
		push @wrong, "$question: $said" unless $is_right || $said =~ /^ERROR:  53200: /;
	}
	push @wrong, 'the session has ended' if ask($s, 'SELECT 1') ne '1';
	is("@wrong", '', ($more >> 20) . ' MB more: right, or an error of class 53200');
	leave($s);
}
cmp_ok($answers, '>', 0, 'some have been answered');
cmp_ok($errors, '>', 0, 'some have not');
is($node->safe_psql('postgres', $questions{$_}), $right{$_},
	"other sessions know nothing of it: $_") for sort keys %questions;
unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC/, 'no process has crashed');

done_testing();
