"""Whether a cluster is ready for trimtab: gathers facts, then pure checks judge them."""
