"""The parts: packages of requirements.lock, with their licences, and jars of conf/jars.lock."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import Any, Final, TypeAlias

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT: Final = Path(__file__).parents[2]
#: Sets of conf/jars.lock that a controller needs; all others are for tests, benches and the demo on Pulsar.
JARS_NEEDED: Final = ("connector",)
#: The licences that a part may have.  Who passes the part on must keep its licence, and need give away no other code.
ALLOWED: Final = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "MPL-2.0",
        "PSF-2.0",
        "Zlib",
    }
)
#: What packages call their licences in place of the SPDX name.
_SPDX: Final = {
    "Apache 2.0": "Apache-2.0",
    "Apache License v2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
#: Packages that say no more than BSD, by the text of their licence.
_BY_TEXT: Final = {
    "cronsim": "BSD-3-Clause",
    "google-re2": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "nodeenv": "BSD-3-Clause",
    "py4j": "BSD-3-Clause",
}
_PINNED: Final = re.compile(r"^([\w.-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})*)", re.MULTILINE)
#: Name -> version and hashes.
_Pinned: TypeAlias = dict[NormalizedName, tuple[str, str]]
_WORDS: Final = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package of requirements.lock."""

    name: str
    version: str
    #: SHA-256 of each of its files.
    hashes: tuple[str, ...]
    #: required: `pip install trimtab` installs it; optional: an extra does; excluded: only developers need it.
    scope: str
    #: Names of the packages that it depends on.
    depends_on: tuple[str, ...]
    #: SPDX expression; "" where the environment does not have the package.
    licence: str

    @property
    def requirement(self) -> str:
        """The line of a requirements file, with the hashes."""
        return " ".join([f"{self.name}=={self.version}", *(f"--hash=sha256:{each}" for each in self.hashes)])


def packages(lock: Path = ROOT / "requirements.lock") -> list[Package]:
    """All packages of *lock*, by name; what they depend on and their licences are read from this environment."""
    found = _PINNED.findall(lock.read_text(encoding="utf-8"))
    pinned: _Pinned = {canonicalize_name(name): (version, hashes) for name, version, hashes in found}
    required = _closure(_project()["dependencies"], pinned)
    optional = _closure([each for extra in _project()["optional-dependencies"].values() for each in extra], pinned)
    return [
        Package(
            name=name,
            version=version,
            hashes=tuple(re.findall("[0-9a-f]{64}", hashes)),
            scope="required" if name in required else "optional" if name in optional else "excluded",
            depends_on=tuple(sorted(_needs(name, pinned))),
            licence=licence(name),
        )
        for name, (version, hashes) in sorted(pinned.items())
    ]


def of_extra(extra: str, locked: Sequence[Package]) -> set[str]:
    """The names of the packages of *locked* that trimtab[*extra*] installs beside those of trimtab."""
    pinned: _Pinned = {canonicalize_name(one.name): (one.version, "") for one in locked}
    return {str(name) for name in _closure(_project()["optional-dependencies"][extra], pinned)}


def dependencies() -> list[str]:
    """The packages that trimtab itself names, by name."""
    return sorted(canonicalize_name(Requirement(each).name) for each in _project()["dependencies"])


def own_licence() -> str:
    """The licence of trimtab itself, as an SPDX expression."""
    return str(_project()["license"])


def licence(name: str) -> str:
    """The licence of the package *name* as an SPDX expression; "" where it is not installed, or says none."""
    try:
        told = metadata(name)
    except PackageNotFoundError:
        return ""
    if "License-Expression" in told:
        return str(told["License-Expression"])
    if name in _BY_TEXT:
        return _BY_TEXT[name]
    text = str(told["License"]).strip().partition("\n")[0] if "License" in told else ""
    classifiers = [each.rpartition(" :: ")[2] for each in told.get_all("Classifier") or [] if "License ::" in each]
    known = (_SPDX.get(each, each) for each in [text, *classifiers])
    return next((each for each in known if each in ALLOWED), text or ", ".join(classifiers))


def is_allowed(expression: str) -> bool:
    """Whether every licence of the SPDX *expression* is one of ALLOWED; of alternatives, one suffices."""
    choices = expression.split(" OR ") if " AND " not in expression else [expression]
    return any(all(word in ALLOWED for word in _WORDS.findall(one) if word != "AND") and one for one in choices)


def _project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _closure(wanted: Sequence[str], pinned: _Pinned) -> set[NormalizedName]:
    found: set[NormalizedName] = set()
    left = [canonicalize_name(Requirement(each).name) for each in wanted]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += _needs(name, pinned)
    return found


def _needs(name: str, pinned: _Pinned) -> Iterator[NormalizedName]:
    try:
        lines = requires(name) or []
    except PackageNotFoundError:
        return
    for each in map(Requirement, lines):
        needed = canonicalize_name(each.name)
        if needed in pinned and (each.marker is None or each.marker.evaluate({"extra": ""})):
            yield needed
