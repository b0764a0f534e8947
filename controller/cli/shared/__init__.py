"""What several commands share: the console, the options that every command has, logging, failures."""
