"""The colcast command: imports the package that owns a subcommand and passes it the arguments.

To add a subcommand NAME, add one line to `main.SUBCOMMANDS` and, in the package that owns it, a
module with a `click.Command` called `command`. Its callback returns the exit code, or None for 0.
For a failure that the user can fix it raises a `click.ClickException` (exit code 1, one line on
standard error), for a wrong command line a `click.UsageError` (2). Slow imports belong in the
callback, because the module is also loaded for --help and for every completion in the shell.
"""
