"""The best few moves for a cluster, and the proof how good they are: docs/objective.md says what "best" means."""
