"""Rows in columns: the input of the fold, names, their order, and how columns become bytes."""
