"""Carries out commands on a real cluster: checks fencing, checks the cluster before and after, answers each once."""
