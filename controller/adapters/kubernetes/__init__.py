"""Kubernetes: a Lease as the election of leaders."""
