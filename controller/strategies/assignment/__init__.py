"""In which bundle of its namespace a topic lies."""
