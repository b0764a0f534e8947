"""Tries mutants of the core: small mistakes that the tests ought to catch.  See __main__."""
