"""Plans that a person approves: steps, and waves of moves that are under way at the same time."""
