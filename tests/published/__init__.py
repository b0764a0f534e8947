"""What each release wrote: every later one must read it.  ``python -m tests.published`` adds the present release."""
