"""``trimtab options``: print the options that trimtab reads."""

from dataclasses import asdict
from typing import Annotated, TypeAlias

import typer

from controller.cli.shared.console import console, json_option
from controller.cli.shared.layout import columns, print_table
from controller.cli.shared.pulsar_option import version_of
from controller.model.pulsar_version import ASSUMED, PulsarVersion
from controller.settings.known_options import options_table
from controller.wire.answers.offline import OptionAnswer

_Pulsar: TypeAlias = Annotated[
    PulsarVersion,
    typer.Option(
        "--pulsar",
        metavar="VERSION",
        parser=version_of,
        help="The defaults of this version of Pulsar, as 5.0 or 5.0.1.",
    ),
]


def options(
    pulsar: _Pulsar = ASSUMED,
    as_json: Annotated[bool, json_option("answer.option", each="option")] = False,
) -> None:
    """Print every option of broker.conf and trimtab.toml that trimtab reads, with the defaults of a version."""
    rows = options_table(pulsar)
    if as_json:
        for row in rows:
            typer.echo(OptionAnswer(**asdict(row)).as_line())
        return
    header = columns("key", "default", "unit", "meaning", prose=("default", "meaning"))
    print_table(console(), header, [(row.key, row.default, row.unit, row.meaning) for row in rows])
