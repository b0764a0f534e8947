"""What waits for its interval to close: claims, headers, facts, and the limits on them."""
