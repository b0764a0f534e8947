"""Spark itself: its JVM, its session, its log, and what it is started from."""
