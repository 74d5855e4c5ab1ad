SELECT count(y) > 40 AS enough FROM h WHERE z < 30 \gset
\if :enough
SELECT posterior.alter_context(c, maintain => 'sums') FROM unnest(ARRAY['sums', 'vectors']) c;
\endif
SELECT check_sums();
