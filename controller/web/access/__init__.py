"""Who may look: tokens, identity providers, client certificates, trusted proxies, sessions."""
