"""The colcast command: finds the part that owns a subcommand and hands it the arguments."""
