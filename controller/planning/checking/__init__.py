"""Checks plans and certificates in plain steps.  Shares no code with what makes them."""
