"""The settings of a run of the demo.  Little is imported here: Spark starts by them while the rest is loaded."""

import re
from pathlib import Path
from typing import Final

from controller.adapters.disk.places import SHIPPED

#: The demo's settings, with a broker.conf beside them.
SCENARIO: Final = SHIPPED / "scenarios" / "demo.toml"
#: The folder in the scenario's paths, which runs have one of their own for.
_SHARED: Final = "../../.trimtab/demo"
_PERIOD: Final = re.compile(r"period_seconds = \d+")
#: The folder of a run; others may lie beside it.
_RUN: Final = re.compile(r"[0-9]{4,9}")


def demo_conf(base: Path, *, period_seconds: int | None = None) -> Path:
    """The settings file of one run, written to a new folder under *base*, which holds the log, too.

    *period_seconds*: the length of an interval in place of the scenario's.
    """
    folder = new_run(base)
    conf = folder / "trimtab.toml"
    text = SCENARIO.read_text(encoding="utf-8").replace(f"{_SHARED}/log", ".").replace(_SHARED, ".")
    if period_seconds is not None:
        text = _PERIOD.sub(f"period_seconds = {period_seconds}", text)
    conf.write_text(text, encoding="utf-8")
    rules = SCENARIO.with_name("demo.broker.conf")
    (folder / rules.name).write_text(rules.read_text(encoding="utf-8"), encoding="utf-8")
    return conf


def new_run(base: Path) -> Path:
    """A new folder for one run under *base*."""
    number = 1 + max((int(run.name) for run in base.glob("[0-9]*") if _RUN.fullmatch(run.name)), default=0)
    folder = (base / f"{number:04d}").resolve()
    folder.mkdir(parents=True)
    return folder
