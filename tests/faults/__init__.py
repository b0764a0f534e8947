"""Faults on real parts, one after the other, and whether anything was lost, done twice or wrong: docs/faults.md."""
