# No room for a table with a context, nor for temporary files: COPY fails and is rolled back, and
# each statement answers from the rows that exist. A limit of the file size stands for a full disk.
#
# SPDX-License-Identifier: PostgreSQL

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Same;
use Session;
use Test::More;

plan skip_all => 'no prlimit here' if system('prlimit --version > /dev/null 2>&1') != 0;

my $node = PostgreSQL::Test::Cluster->new('full');
# WAL segments are smaller than what the table may become.
$node->init(extra => ['--wal-segsize=1']);
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'pg_posterior'
	posterior.device = cpu
	posterior.maintenance_delay = 10
	shared_buffers = 1MB
});
$node->start;
# Wide rows fill the table without filling its context.
$node->safe_psql('postgres', same_setup() . q{
	ALTER TABLE t ADD COLUMN wide text;
	ALTER TABLE t ALTER COLUMN wide SET STORAGE PLAIN});
my $file = $node->basedir . '/rows';
sub copy
{
	my ($first, $last) = @_;
	open(my $out, '>', $file) or die;
	print $out join("\t", $_, $_ * 0.1, sin($_), 'x' x 7000) . "\n" for $first .. $last;
	close($out);
	return "COPY t FROM '$file'";
}

my $s = session($node);
ask($s, "\\set VERBOSITY verbose\n");
is(ask($s, 'SELECT same()'), '40 same', 'a session');
my $pid = ask($s, 'SELECT pg_backend_pid()');
is(ask($s, copy(41, 60)), '', 'with room');
is(ask($s, 'SELECT same()'), '60 same', 'its rows are there');

# PostgreSQL has no error class for this errno.
my $full = qr/ERROR:  \w+: could not (extend|write)/;
system_or_bail('prlimit', "--pid=$pid", '--fsize=' . (2 << 20));
for my $form ('%s', 'BEGIN; INSERT INTO t VALUES (70, 1, 1); SELECT same(); %s')
{
	like(ask($s, sprintf($form, copy(100, 500))), $full, 'no room for COPY');
	ask($s, 'ROLLBACK') if $form =~ /BEGIN/;
	is(ask($s, 'SELECT same()'), '60 same', 'none of its rows is there');
	is(same($node), '60 same', 'nor for others') for 1 .. 2;
}
like(ask($s, 'BEGIN; SAVEPOINT a; ' . copy(100, 500)), $full, 'no room within a savepoint');
is(ask($s, 'ROLLBACK TO a; SELECT same()'), '60 same', 'which is rolled back');
is(ask($s, same_rows(61, 65) . ' SELECT same()'), '65 same', 'small rows fit');
is(same($node), '60 same', 'others do not see them');
is(ask($s, 'COMMIT; SELECT same()'), '65 same', 'committed');
is(same($node), '65 same', 'for all');
leave($s);

# Temporary files: rows of a context whose order needs a sort that spills.
$s = session($node);
ask($s, "\\set VERBOSITY verbose\n");
$node->safe_psql('postgres', q{
	CREATE TABLE big AS SELECT i, sin(i) AS y, i * 0.1 AS x, -i AS place
		FROM generate_series(1, 3000) i;
	SELECT posterior.create_context('big', 'big', 'y', features => '{x}', order_by => 'place',
			model => 'tabular_small', maintain => 'read')});
my $question = q{SELECT posterior.predict('big', q) FROM (SELECT 0.5::float8 AS x) q};
my $right = ask($s, $question);
like($right, qr/^\w+\(/, 'an answer');
$node->append_conf('postgresql.conf', "temp_file_limit = 32kB\nwork_mem = 64kB\n");
$node->reload;
$s->{in} .= "\\c\n\\set VERBOSITY verbose\n";
$node->safe_psql('postgres', 'UPDATE big SET y = y');
like(ask($s, $question), qr/ERROR:  53400: temporary file size exceeds/,
	'a limit of temporary files');
is(same($node), '65 same', 'others are answered');
is(ask($s, "SET work_mem = '4MB'; $question"), $right, 'and the session with more memory');
leave($s);
$node->stop;

done_testing();
