"""The output of commands with --json, for programs; docs/schemas/answer.*.json is generated from it."""
