"""Which bundles are divided, and where."""
