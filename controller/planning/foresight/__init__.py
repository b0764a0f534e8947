"""Forecasts load from the history of the bundles."""
