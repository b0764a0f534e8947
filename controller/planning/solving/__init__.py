"""Makes plans: the search, and the lower bounds that say how good it is."""
