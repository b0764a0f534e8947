"""Files of its own on this machine: where they lie, jars, and how a file is written whole."""
