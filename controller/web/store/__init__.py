"""What the page and REST know: an embedded store that is filled from the log, and queries on it."""
