"""The page of every command and option, made from the parser."""

import argparse

from mkdocs.exceptions import PluginError

from adjudge.engine.commands.parser import parser


def commands_page() -> str:
    """The page of every command and option."""
    [commands] = [one for one in parser()._actions if isinstance(one, argparse._SubParsersAction)]
    listed = "\n\n".join(
        _command(name, commands.choices[name], str(one.help))
        for name, one in ((one.dest, one) for one in commands._choices_actions)
    )
    return f"""# Commands

Results go to stdout, progress and logs to stderr. `--json` prints one JSON document instead of tables. A misspelt
command, option or name is answered with the nearest ones.

| exit code | means |
|--:|---|
| 0 | done; every scorecard is scored |
| 3 | done; something is unscored, a line was rejected, or `check` had too little to tell |
| 2 | the command or its configuration cannot be used; one line says what to do |
| 4 | `check` found a regression |
| 130 | interrupted; the same command goes on |
| 1 | anything else, such as a judge that cannot be used |

{listed}
"""


def _command(name: str, command: argparse.ArgumentParser, said: str, level: int = 2) -> str:
    inner = [one for one in command._actions if isinstance(one, argparse._SubParsersAction)]
    options = [one for one in command._actions if one not in inner and one.dest != "help"]
    rows = []
    for one in options:
        if one.help == argparse.SUPPRESS:
            continue
        if not one.help:
            raise PluginError(f"adjudge {name}: {one.option_strings or one.dest}: has no help")
        words = ", ".join(f"`{each}`" for each in one.option_strings) or f"`{one.metavar or one.dest}`"
        value = _value(one) if one.option_strings else ""
        rows.append(f"| {words}{value} | {str(one.help) % _shown(one)} |".replace("||", "\\|\\|"))
    table = "\n".join(["| option | does |", "|---|---|", *rows]) if rows else ""
    parts = [f"{'#' * level} `adjudge {name}`", f"{said[:1].upper()}{said[1:]}.", table]
    for each in inner:
        parts += [
            _command(f"{name} {one.dest}", each.choices[one.dest], str(one.help), 3)
            for one in each._choices_actions
        ]
    return "\n\n".join(filter(None, parts))


def _shown(one: argparse.Action) -> dict[str, object]:
    return {"default": one.default, "metavar": one.metavar, "dest": one.dest}


def _value(one: argparse.Action) -> str:
    if one.nargs == 0:
        return ""
    if one.choices is not None:
        return " " + ", ".join(f"`{each}`" for each in one.choices)
    metavar = one.metavar if isinstance(one.metavar, str) else one.dest.upper()
    more = " ..." if one.nargs in ("+", "*") else ""
    return f" `{metavar}{more}`"
