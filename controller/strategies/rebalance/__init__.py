"""Who gets what when the members of a group change: all spread anew, or only what has to move."""
