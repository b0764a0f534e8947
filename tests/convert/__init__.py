"""Rewrites files of older formats, which trimtab itself refuses: scripts/convert KIND OLD NEW."""
