"""Which bundle of its namespace a topic belongs to."""
