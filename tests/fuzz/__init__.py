"""Spoilt input for every reader: made from valid samples by chance, from seeds that a failure names."""
