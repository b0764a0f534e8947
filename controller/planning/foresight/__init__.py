"""What the history of the bundles says about the load to come."""
