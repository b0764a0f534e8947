"""A rolling restart of a real Pulsar cluster under traffic, by a plan: scripts/rolling-restart."""
