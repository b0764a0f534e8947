"""The scenarios that come with trimtab, and the strategies that a comparison names."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.adapters.disk.places import SHIPPED
from controller.model.errors import SettingsError
from controller.settings.broker_conf import read_broker_conf
from controller.settings.pairs import LOAD_MANAGER, PLACEMENT, SHEDDER, needed_by
from controller.settings.scenario import Scenario, read_scenario
from controller.strategies.catalogue import SHEDDERS, is_python_name, short_name

#: Where they lie.
LIBRARY: Final = SHIPPED / "scenarios" / "simulated"
_SUFFIX: Final = ".toml"
_CONF_SUFFIX: Final = ".conf"


def shipped(library: Path = LIBRARY) -> Iterator[tuple[str, Scenario]]:
    """Name and content of each scenario in the folder *library*, by name.

    Raises SettingsError where there is none, or where one is wrong.
    """
    paths = sorted(library.glob(f"*{_SUFFIX}"))
    if not paths:
        raise SettingsError(f"{library}: no scenarios in this folder")
    for path in paths:
        yield path.stem, read_scenario(path)


def scenario_path(name: str) -> Path:
    """The file of the scenario *name* as a path, or as the name of one that comes with trimtab."""
    if name.endswith(_SUFFIX) or os.sep in name:
        return Path(name)
    path = LIBRARY / f"{name}{_SUFFIX}"
    if not path.is_file():
        raise SettingsError(
            f"{name or repr(name)}: no scenario of that name comes with trimtab; give a file that ends in {_SUFFIX},"
            " or a name that `trimtab simulate --list` prints"
        )
    return path


def strategy_options(text: str) -> dict[str, str]:
    """The options of broker.conf that the strategy *text* stands for: a shedder, a shedder+placement, or a file.

    Raises SettingsError where there is no such shedder or file.
    """
    if text.endswith(_CONF_SUFFIX):
        return read_broker_conf(Path(text))
    shedder, _, placement = text.partition("+")
    if short_name(shedder) not in SHEDDERS and not is_python_name(shedder):
        raise SettingsError(
            f"{text}: no such strategy; allowed: {', '.join(SHEDDERS)}, one of these with a placement as in"
            " ThresholdShedder+LeastResourceUsageWithWeight, or a file that ends in .conf"
        )
    needed = needed_by(shedder)
    return {SHEDDER: shedder, LOAD_MANAGER: "", **needed, **({PLACEMENT: placement} if placement else {})}
