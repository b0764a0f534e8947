"""Measurements behind the pages of the docs; ``scripts/measure`` runs them."""
