"""What each process shows of itself: metrics for Prometheus, whether it is alive, and whether it is ready."""
