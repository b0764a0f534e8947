"""The protocol of leaders, commands and executors: a model of it, its rules, and checks of both (docs/protocol.md)."""
