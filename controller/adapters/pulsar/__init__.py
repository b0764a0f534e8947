"""Pulsar's admin API and load data.  Nobody else imports pulsar-client or an HTTP library."""
