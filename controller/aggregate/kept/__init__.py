"""What a shard keeps from interval to interval: averages of bundles, states of namespaces and brokers."""
