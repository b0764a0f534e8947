"""What became of moves: what each promised, what came of it, and whether it was undone.  Pure, interval by interval."""
