"""Proposals and approvals: making them, signing them, and what they are worth under a policy."""
