SELECT string_agg('p' || bus, ', ' ORDER BY bus) || ', ' || string_agg('q' || bus, ', ' ORDER BY bus) AS loads FROM feeder.bus \gset
