"""The page and REST: what a person sees in a browser.  Never decides, never commands."""
