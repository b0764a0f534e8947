"""Long answers of commands: their JSON, and their tables."""
