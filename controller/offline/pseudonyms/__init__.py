"""Other names for everything in a recording that names somebody or something."""
