"""Kafka: the log, the journal, the inbox.  Nobody else imports confluent_kafka."""
