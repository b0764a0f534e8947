"""The page and its REST: what a browser and a program see of a cluster.  It reads; it never decides or commands."""
