"""``trimtab run``: the controller."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from controller.adapters import signals
from controller.settings.trimtab_toml import read_settings


def run(
    conf: Annotated[Path, typer.Option(help="The settings.")] = Path("conf/trimtab.toml"),
) -> None:
    """Run the controller until SIGTERM or Ctrl-C."""
    from streaming import supervisor  # only where Spark runs: it takes seconds to load

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    settings = read_settings(conf)
    signals.run_until_told(lambda ending: supervisor.run(settings, ending.is_set, ending.may_take))
