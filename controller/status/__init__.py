"""The answers of `trimtab status` and `trimtab lookup`: recent decisions, and what is known of one bundle."""
