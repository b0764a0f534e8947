"""How fast trimtab is on this machine."""
