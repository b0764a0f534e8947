"""What the commands print with --json, for programs that read it; docs/schemas/answer.*.json is made from it."""
