"""trimtab's plans beside those of Meta's Rebalancer, on the clusters of ``trimtab bench balance``."""
