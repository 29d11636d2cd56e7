"""Extensions of Click: options grouped in sections, and several values per option."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


def removed(name: str, instead: str, **more: Any) -> Callable[[_Decorated], _Decorated]:
    """A removed option: using it is an error that says what to do instead."""

    def refuse(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value:
            raise click.UsageError(f"{name} was removed: {instead}", context)

    return click.option(name, hidden=True, expose_value=False, callback=refuse, **more)


class Option(click.Option):
    """An option in a section of the help.

    Attributes:
        section: the section's title.
        several: whether it takes all values up to the next option (`--sizes 20 100`); it may also
            be repeated.
    """

    def __init__(self, *args: Any, section: str = "Options", several: bool = False, **more: Any):
        if several:
            more["multiple"] = True
        super().__init__(*args, **more)
        self.section = section
        self.several = several


class Command(click.Command):
    """A command whose options may have sections and several values."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeats an option's name before each further value, then parses like Click."""
        return super().parse_args(ctx, self._repeated(args))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists options by section, in the order of declaration; --help comes last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                title = parameter.section if isinstance(parameter, Option) else "Options"
                sections.setdefault(title, []).append(record)
        for title in sorted(sections, key="Options".__eq__):
            with formatter.section(title):
                formatter.write_dl(sections[title])

    def _repeated(self, args: list[str]) -> list[str]:
        several = {name for option in self._several() for name in option.opts}
        found: list[str] = []
        # The option whose values are being read, and how many of them have been read.
        current, values = None, 0
        for place, arg in enumerate(args):
            if arg == "--":
                return found + args[place:]
            if arg.startswith("-") and arg != "-":
                name, given, _ = arg.replace("_", "-").partition("=")
                current, values = (name if name in several else None), len(given)
            elif current is not None:
                found += [current] * (values > 0)
                values += 1
            found.append(arg)
        return found

    def _several(self) -> list[Option]:
        return [one for one in self.params if isinstance(one, Option) and one.several]


def section(title: str) -> Callable[..., Callable[[_Decorated], _Decorated]]:
    """`click.option` for this section."""

    def option(*names: str, **more: Any) -> Callable[[_Decorated], _Decorated]:
        return click.option(*names, cls=Option, section=title, **more)

    return option


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic from Click 8.5 on
    """A value parsed by a function, whose ValueError becomes the usage error."""

    name = "text"

    def __init__(self, read: Callable[[str], Any]) -> None:
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The parsed value; a default that is not text passes unchanged."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Number(click.FloatRange):
    """A range of numbers that refuses NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return self.fail(f"{value} is not a number", param, ctx) if number != number else number


def _milliseconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s)", text)
    if not found or not float(found[1]) > 0:
        raise ValueError(f"{text!r}: expected a time like 25ms or 1.5s")
    return float(found[1]) * (1000 if found[2] == "s" else 1)


MILLISECONDS = Parsed(_milliseconds)
