"""The releases of Pulsar whose classes can be asked, and where their jars and a JVM for them come from.

``TRIMTAB_RIVAL_PULSAR`` names another release than the usual one.  ``TRIMTAB_RIVAL_JARS`` names a folder with its jars,
for a release that jars.lock does not pin; ``TRIMTAB_RIVAL_JAVA`` a ``java`` for one whose classes need a later JVM.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.adapters.disk import jars
from controller.model.errors import SettingsError

USUAL: Final = "4.0.8"
_LOCK: Final = Path(__file__).with_name("jars.lock")


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Pulsar, as in ``4.0.8``."""

    version: str

    def jars(self) -> list[Path]:
        """The jars that its load managers need: fetched, unless ``TRIMTAB_RIVAL_JARS`` has them.

        Raises SettingsError where they are neither pinned nor there, and as ``jars.fetch`` does.
        """
        folder = os.environ.get("TRIMTAB_RIVAL_JARS")
        if not folder:
            return jars.fetch(f"pulsar-{self.version}", lock=_LOCK)
        found = sorted(Path(folder).glob("*.jar"))
        if not any(path.name == f"pulsar-broker-{self.version}.jar" for path in found):
            raise SettingsError(f"TRIMTAB_RIVAL_JARS={folder!r} holds no pulsar-broker-{self.version}.jar")
        return found

    def java(self) -> str:
        """The JVM that runs them."""
        return os.environ.get("TRIMTAB_RIVAL_JAVA") or jars.java()


def named() -> Release:
    """The release that ``TRIMTAB_RIVAL_PULSAR`` names, else the usual one."""
    return Release(os.environ.get("TRIMTAB_RIVAL_PULSAR") or USUAL)
