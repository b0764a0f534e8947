"""Rules that hold commands back, whatever the strategies chose; each gives a verdict.

A guardrail is one file: its rule, its limits with their keys in trimtab.toml, its reason, and what the reason means.
``controller.cycle.limits`` lists the limits, ``controller.status.reasons`` the meanings.
"""
