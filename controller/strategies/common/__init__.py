"""What several strategies share; a strategy imports from here, never from another strategy."""
