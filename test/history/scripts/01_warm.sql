SELECT posterior.warm_context('causal'), posterior.warm_context('window'),
	posterior.warm_context('altered');
SELECT check_all();
SELECT check_altered();
