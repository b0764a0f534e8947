"""What Pulsar's brokers do when they report their load.  trimtab does not need it; its recorded answers are tested."""
