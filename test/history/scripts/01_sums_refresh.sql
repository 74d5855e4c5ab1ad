SELECT count(y) > 40 AS enough FROM h WHERE z < 30 \gset
\if :enough
SELECT posterior.alter_context('sums', maintain => 'sums');
\endif
SELECT check_sums();
