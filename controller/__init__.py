"""trimtab's own code below Spark: model, folds, strategies, the cycle, and the adapters around them."""
