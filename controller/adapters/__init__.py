"""IO: implementations of the ports.  No other package imports the client libraries."""
