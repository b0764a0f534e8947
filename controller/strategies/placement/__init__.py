"""Which broker a bundle goes to."""
