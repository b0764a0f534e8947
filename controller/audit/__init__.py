"""Outcomes of moves: what each promised, what it achieved, and whether it was undone.  Pure, interval by interval."""
