"""What trimtab has done lately, and what it knows of one bundle."""
