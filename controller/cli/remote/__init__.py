"""``--server``: commands that ask a server of the page by REST, and need no settings, log or election."""
