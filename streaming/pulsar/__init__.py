"""A log in Pulsar as a data source of Spark."""
