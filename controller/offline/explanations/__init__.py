"""Explains decisions: makes a decision again and records the answers of its strategies."""
