"""Bytes in, records out, and back (pydantic)."""
