# A table with a named context, and a function that says how many rows it has and whether an answer from
# the context equals one from a frame of the same statement.
#
# SPDX-License-Identifier: PostgreSQL
package Same;

use strict;
use warnings;
use Exporter 'import';
our @EXPORT = ('same', 'same_function', 'same_setup', 'same_rows');

# same(): `N same` or `N differ`. It asks about table t(k, x, y) and context c.
sub same_function
{
	return q{
		CREATE FUNCTION same() RETURNS text STABLE LANGUAGE sql SET posterior.model = 'tabular_small' AS $$
			SELECT n || CASE WHEN p OPERATOR(posterior.=) (SELECT posterior.predict('c', q) FROM (SELECT 0.5::float8 AS x) q)
				THEN ' same' ELSE ' differ' END
			FROM (SELECT k, count(*) OVER () - 1 AS n, posterior.regress(y, x)
					OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS p
				FROM (SELECT k, x, y FROM t UNION ALL SELECT 1000000, 0.5, NULL) u) w
			WHERE k = 1000000 $$;
	};
}

# Rows of t.
sub same_rows
{
	my ($first, $last) = @_;
	return "INSERT INTO t (k, x, y) SELECT i, i * 0.1, sin(i * 0.1) FROM generate_series($first, $last) i;";
}

# The extension, a table of 40 rows, its context and the function.
sub same_setup
{
	return q{
		CREATE EXTENSION pg_posterior;
		CREATE TABLE t (k int PRIMARY KEY, x float8, y float8);
		SELECT posterior.create_context('c', 't', 'y', features => '{x}', order_by => 'k', model => 'tabular_small');
	} . same_function() . same_rows(1, 40);
}

sub same
{
	my ($node, $database) = @_;
	return $node->safe_psql($database // 'postgres', 'SELECT same()');
}

1;
