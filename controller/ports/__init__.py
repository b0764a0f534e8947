"""What engine, collector and executor ask of the outside: protocols that the adapters implement."""
