"""Claims, headers and facts that wait for their interval to close, and the limits on them."""
