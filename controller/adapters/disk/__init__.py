"""trimtab's own files on this machine: where they are, jars, and atomic writes."""
