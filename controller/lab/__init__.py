"""Servers of Kafka, ZooKeeper and Pulsar on this machine, with traffic: for tests and the demo on Pulsar."""
