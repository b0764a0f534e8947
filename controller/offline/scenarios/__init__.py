"""Scenarios: run on a modelled cluster, judged, and compared between strategies."""
