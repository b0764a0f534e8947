"""The log in Pulsar: metrics, results, commands, journal and dead letters are topics of one namespace."""
