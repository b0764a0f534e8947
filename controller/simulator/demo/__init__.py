"""``trimtab demo``: the real controller balances a modelled cluster while a user watches."""
