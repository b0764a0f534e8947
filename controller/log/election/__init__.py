"""An election on the log's own topics, where a site has no ZooKeeper (docs/adr/0018-an-election-on-the-log.md)."""
