"""A deterministic simulation of the whole loop (docs/simulation.md): one process, one thread, one seed."""
