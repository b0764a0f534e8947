"""The election and the collectors' group in ZooKeeper.  Nobody else imports kazoo."""
