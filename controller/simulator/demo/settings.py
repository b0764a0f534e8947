"""The settings of a run of the demo.  Little is imported here: Spark starts by them while the rest is loaded."""

import re
from pathlib import Path
from typing import Final

from controller.adapters.disk.places import SHIPPED
from controller.settings.log import FolderLogSettings
from controller.settings.trimtab_toml import Settings, read_settings

#: The demo's settings, with a broker.conf beside them.
SCENARIO: Final = SHIPPED / "scenarios" / "demo.toml"
#: The folder of a run; others may lie beside it.
_RUN: Final = re.compile(r"[0-9]{4,9}")


def demo_settings(base: Path) -> Settings:
    """The settings for one run in a new folder under *base*, so that runs do not share a log."""
    settings = read_settings(SCENARIO)
    folder = new_run(base)
    log = FolderLogSettings(path=str(folder))
    moved = {
        "log": settings.log.model_copy(update={"kind": "folder", "folder": log}),
        "election": settings.election.model_copy(update={"path": str(folder / "election")}),
        "checkpoint": settings.checkpoint.model_copy(update={"path": str(folder / "checkpoint")}),
    }
    return settings.model_copy(update=moved)


def new_run(base: Path) -> Path:
    """A new folder for one run under *base*."""
    number = 1 + max((int(run.name) for run in base.glob("[0-9]*") if _RUN.fullmatch(run.name)), default=0)
    folder = (base / f"{number:04d}").resolve()
    folder.mkdir(parents=True)
    return folder
