"""Whether a cluster is fit to be balanced by trimtab: facts are gathered, then judged by pure checks."""
