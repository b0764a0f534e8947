"""This process and those that it started: signals, and the failpoints of tests."""
