"""When a micro-batch begins, how much it reads, and whether batches make progress."""
