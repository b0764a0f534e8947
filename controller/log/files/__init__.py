"""``Log`` in a folder: files that are created once and never change; no server, one machine."""
