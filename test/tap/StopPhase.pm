# StopPhase.pm: stop a process while it encodes, so that nothing depends on its speed. Slow
# arithmetic (posterior.kernels = reference, posterior.threads = 1) gives time for that.
#
# SPDX-License-Identifier: PostgreSQL
package StopPhase;

use strict;
use warnings;
use Exporter 'import';
use PostgreSQL::Test::Cluster;
our @EXPORT = ('encoding_node', 'stop_phase');

# A server that computes slowly, with the extension, where nothing is encoded ahead; $more settings.
sub encoding_node
{
	my ($name, $more) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	$node->append_conf('postgresql.conf', q{
		shared_preload_libraries = 'pg_posterior'
		posterior.device = cpu
		posterior.kernels = reference
		posterior.threads = 1
		posterior.cache_size = '256MB'
		posterior.maintenance_delay = -1
	} . ($more // ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_posterior');
	return $node;
}

# Waits until a process of this type, as in pg_stat_activity, is in this phase, as in
# posterior.stat_progress; stops it, and says which. Where it was too fast, $again is called, which
# has it come there once more.
sub stop_phase
{
	my ($node, $type, $phase, $again) = @_;
	for (1 .. 10)
	{
		my $pid = $node->safe_psql('postgres', qq{
			CREATE TEMPORARY TABLE stopped (pid int);
			DO \$\$
			DECLARE
				found int;
			BEGIN
				FOR i IN 1 .. 20000 LOOP
					SELECT p.pid INTO found FROM posterior_internal.progress() p
						JOIN pg_stat_activity b ON b.pid = p.pid
					WHERE b.backend_type = '$type' AND p.phase = '$phase';
					EXIT WHEN found IS NOT NULL;
					PERFORM pg_sleep(0.001), pg_stat_clear_snapshot();
				END LOOP;
				IF found IS NOT NULL THEN
					EXECUTE format('COPY (SELECT WHERE false) TO PROGRAM ''kill -STOP %s''', found);
					INSERT INTO stopped VALUES (found);
				END IF;
			END \$\$;
			SELECT pid FROM stopped});
		if ($pid ne '')
		{
			my $is = $node->safe_psql('postgres',
				"SELECT phase FROM posterior_internal.progress() WHERE pid = $pid");
			return $pid if $is eq $phase;
			kill 'CONT', $pid;
		}
		$again->();
	}
	die 'nothing is encoded';
}

1;
