"""Ticks: they clock the intervals, and say when a batch begins and how much it may read."""
