"""A log in Pulsar."""
