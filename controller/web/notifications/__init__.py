"""Tells people what happened: webhooks that `trimtab serve` calls."""
