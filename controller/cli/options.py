"""``trimtab options``: print the options that trimtab reads."""

from dataclasses import asdict
from typing import Annotated

import typer

from controller.cli.shared.console import console, json_option
from controller.cli.shared.layout import columns, print_table
from controller.settings.known_options import options_table
from controller.wire.answers.offline import OptionAnswer


def options(
    as_json: Annotated[bool, json_option("answer.option", each="option")] = False,
) -> None:
    """Print every option of broker.conf and trimtab.toml that trimtab reads."""
    rows = options_table()
    if as_json:
        for row in rows:
            typer.echo(OptionAnswer(**asdict(row)).as_line())
        return
    header = columns("key", "default", "unit", "meaning", prose=("default", "meaning"))
    print_table(console(), header, [(row.key, row.default, row.unit, row.meaning) for row in rows])
