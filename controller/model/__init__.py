"""The values that every other package uses: names, columnar load, decisions, commands, memory, errors.  No IO."""
