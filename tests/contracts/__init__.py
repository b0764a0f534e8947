"""What every implementation of a port keeps: one file a port, whose tests each implementation inherits.

Implementations that need no server run them among the unit tests, all others among the integration tests.
"""
