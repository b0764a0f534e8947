"""What each process exposes about itself: metrics for Prometheus, liveness and readiness."""
