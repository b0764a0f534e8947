"""Recordings, and what runs on them without a cluster."""
