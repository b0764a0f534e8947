"""The nouns: names, columnar load, decisions, commands, errors.  Nothing here does anything."""
