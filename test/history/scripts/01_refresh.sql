SELECT posterior.refresh_context('causal');
SELECT check_causal('causal');
