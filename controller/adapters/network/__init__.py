"""Calls to servers, whichever they are: deadlines, TLS, trying again, and why one cannot be reached."""
