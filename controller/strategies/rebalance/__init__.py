"""Rebalancing when the members of a group change: reassign everything, or only what has to move."""
