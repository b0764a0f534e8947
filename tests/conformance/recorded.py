"""The recorded cases of a component as a release of Pulsar answers them; tests/vectors/README.md says how they lie."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.java_rival.answers import FILE, VECTORS, files, read_cases

Case = dict[str, Any]

#: The release whose answers lie beside the inputs.
BASE: Final = "4.0.8"
#: The environment variable that names other vectors.
FOLDER: Final = Path(os.environ.get("TRIMTAB_VECTORS") or VECTORS)


def releases(component: str) -> tuple[str, ...]:
    """Those that have answered the cases of *component*; none where they are of no class of Pulsar's releases."""
    base = _files(component)
    names = {folder.name for root in _roots(base) for folder in root.iterdir() if folder.is_dir()}
    found = {name for name in names if any(_of_release(file, name) for file in base) or _own(component, name)}
    return tuple(sorted(found | {BASE})) if found else ()


def cases(component: str, release: str) -> list[Case]:
    """All cases of *component* with what *release* answers."""
    own = _own(component, release)
    if own is not None:
        return read_cases(own)
    return [case for file in _files(component) for case in _answered(file, release)]


def source(component: str, release: str) -> Path:
    """The folder with the cases of *component* and *release*: ``FOLDER``, or that of the committed ones."""
    own = _own(component, release)
    return own.parent.parent if own is not None else _files(component)[0].parent


def _files(component: str) -> list[Path]:
    """The files with the cases of *component*: in the folder that was named, else the committed ones."""
    for root in (FOLDER, VECTORS):
        found = [path for name in files(component) if (path := _file(root, name))]
        if found and any(FOLDER.rglob("*.jsonl*")):
            return found
    raise pytest.UsageError(f"{FOLDER / component}.jsonl[.gz]: not found, so {component} cannot be tested")


def _roots(base: list[Path]) -> tuple[Path, ...]:
    """Where answers to the cases in *base* may lie: the committed ones answer committed cases alone."""
    return (FOLDER, VECTORS) if base[0].parent == VECTORS else (FOLDER,)


def _own(component: str, release: str) -> Path | None:
    """The file of cases that are the release's own; those of ``BASE`` lie among the inputs."""
    paths = (_file(root / release, component) for root in _roots(_files(component)))
    return next((path for path in paths if path is not None and release != BASE), None)


def _file(folder: Path, name: str) -> Path | None:
    paths = (folder / f"{name}.jsonl{end}" for end in ("", ".gz"))
    return next((path for path in paths if path.exists()), None)


def _answered(file: Path, release: str) -> Iterator[Case]:
    line = _of_release(file, release)
    if line is None and release != BASE:
        return
    base = read_cases(file)
    differing = {one["case"]: one["expected"] for one in line["differing"]} if line and release != BASE else {}
    if line is not None and (len(base) != line["cases"] or differing.keys() - {case["case"] for case in base}):
        raise pytest.UsageError(f"{file} is not what {release} has answered: record it again with scripts/vectors")
    for case in base:
        case.setdefault("pulsar", release)
        if case["case"] in differing:
            case["expected"] = differing[case["case"]]
            case.pop("acceptable", None)
            _end_with_the_answers(case)
        yield case


def _end_with_the_answers(case: Case) -> None:
    """Rounds after one that another release answers otherwise have no answer: what follows would be another cluster."""
    if "rounds" in case["expected"] and "rounds" in case["input"]:
        rounds = case["input"]["rounds"][: len(case["expected"]["rounds"])]
        case["input"] = case["input"] | {"rounds": rounds}


def _of_release(file: Path, release: str) -> dict[str, Any] | None:
    """What *release* answered to the cases of *file*."""
    name = file.name.partition(".")[0]
    found = (_lines(root / release / FILE).get(name) for root in _roots([file]))
    return next((line for line in found if line is not None), None)


@cache
def _lines(path: Path) -> dict[str, dict[str, Any]]:
    return {line["file"]: line for line in read_cases(path)} if path.exists() else {}
