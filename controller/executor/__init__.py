"""Carries commands out on a real cluster: fences them, checks the cluster before and after, answers each once."""
