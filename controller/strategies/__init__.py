"""Pure decisions; one file, one strategy; siblings never import siblings."""
