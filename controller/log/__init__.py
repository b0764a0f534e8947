"""The log: its protocol, once for all systems, above the narrow port of ``port.py``."""
