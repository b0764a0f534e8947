"""``trimtab options``: print the options that trimtab reads."""

from typing import Annotated, TypeAlias

import typer

from controller.cli.shared.answers import fields_of, print_answers, show
from controller.cli.shared.console import json_option
from controller.cli.shared.option_groups import version_of
from controller.model.pulsar_version import ASSUMED, PulsarVersion
from controller.settings.known_options import options_table
from controller.wire.answers.offline import OptionAnswer

_Pulsar: TypeAlias = Annotated[
    PulsarVersion,
    typer.Option(
        "--pulsar",
        metavar="VERSION",
        parser=version_of,
        help="The defaults of this version of Pulsar, such as 5.0 or 5.0.1.",
    ),
]


def options(
    pulsar: _Pulsar = ASSUMED,
    as_json: Annotated[bool, json_option("answer.option", each="option")] = False,
) -> None:
    """Print every option of broker.conf and trimtab.toml that trimtab reads, with the defaults of a version."""
    rows = [OptionAnswer.from_object(row) for row in options_table(pulsar)]
    header = fields_of(OptionAnswer, "key", "default", "unit", "meaning")
    show(rows, lambda out: print_answers(out, header, rows), as_json=as_json)
