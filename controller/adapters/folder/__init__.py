"""The log, the journal, the inbox and the election in folders: no server, one machine."""
