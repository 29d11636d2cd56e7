"""The colcast command: finds the part that owns a subcommand and hands it the arguments.

To add a subcommand NAME: one line in `main.SUBCOMMANDS`, and in the part a module with a
`click.Command` called `command`. Its callback returns the exit code, or None for 0; a failure that
the user can fix is a `click.ClickException` (exit code 1, one line on standard error), a wrong
command line a `click.UsageError` (2). Slow imports belong in the callback: the
module is also loaded for --help and for each completion in the shell.
"""
