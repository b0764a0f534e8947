"""Replays a recording with other decisions: the load is the recorded one, its place follows the decisions."""
