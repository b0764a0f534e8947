"""The fold over one shard of the bundles: takes rows in, closes intervals, stores its state as a blob."""
