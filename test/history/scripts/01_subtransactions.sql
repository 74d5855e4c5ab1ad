SELECT many_subtransactions(12);
