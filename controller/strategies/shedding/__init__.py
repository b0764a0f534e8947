"""Which bundles leave their broker."""
