"""A modelled Pulsar cluster."""
