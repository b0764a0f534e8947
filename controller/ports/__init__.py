"""Protocols for the systems around trimtab (log, journal, election); controller.adapters implements them."""
