"""What the controller costs with three servers of the page beside it, and without."""
