"""A modelled Pulsar cluster and the demo that runs on it."""
