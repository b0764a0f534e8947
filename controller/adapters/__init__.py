"""IO: the only importers of client libraries, behind small protocols."""
