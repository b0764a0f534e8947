"""Code that several strategies share.  A strategy imports from here, never from another strategy."""
