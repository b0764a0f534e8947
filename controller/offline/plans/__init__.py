"""Plans that an operator requests: made, checked against the cluster, and carried out."""
