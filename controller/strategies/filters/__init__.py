"""Which brokers a bundle may go to."""
