"""Pure decisions: one strategy is one file or one folder.  Strategies import `common`, and never each other."""
