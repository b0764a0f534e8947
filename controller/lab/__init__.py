"""What only demos and tests start: real servers, processes, traffic, and the two demos."""
