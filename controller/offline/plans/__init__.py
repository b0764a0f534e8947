"""Plans that a person asks for: made, held against the cluster as it is, and carried out."""
