"""Pseudonyms for all names in a recording."""
