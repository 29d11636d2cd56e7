"""The colcast command, which imports a subcommand's package and passes it the arguments.

To add a subcommand, add a line to `main.SUBCOMMANDS` and, to the package that owns it, a module
with a `click.Command` called `command`. Its callback returns the exit code, or None for 0. It
raises a `click.ClickException` for a failure that the user can fix (exit code 1, one line on
standard error), and a `click.UsageError` for a wrong command line (2). Slow imports belong in the
callback, because the module is also loaded for --help and for shell completion.
"""
