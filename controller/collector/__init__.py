"""The collector: sweeps the brokers every interval, publishes what they say, and ends the intervals."""
