"""What a shard remembers from interval to interval: averages of bundles, states of namespaces and brokers."""
