"""The state of a shard between intervals: averages of bundles, and states of namespaces and brokers."""
