"""The Spark query, thin: schemas, sources, state, sink, session.  No arithmetic here."""
