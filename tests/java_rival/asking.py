"""Asks a driver in Java, and compares its answers with ours."""

import math
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from controller.adapters.disk import jars
from controller.adapters.disk.java_compiler import compile_java
from controller.bench.java_rival import UNVERIFIED
from tests.java_rival.asked import PlanRequest

_JAVA: Final = Path(__file__).with_name("java")


class Driver:
    """A compiled driver."""

    def __init__(self, source: str, main: str, fetched: Sequence[Path], folder: Path, java: str = "") -> None:
        """Compile *source*, whose class is *main*, into *folder* with the jars *fetched*; *java* is to run it."""
        java, classpath = java or jars.java(), ":".join(map(str, fetched))
        compile_java([_JAVA / source], fetched, folder)
        self._command = [java, "-Xmx512m", *jars.SHORT_LIFE, *UNVERIFIED, "-cp", f"{folder}:{classpath}", main]

    def answers(self, lines: Sequence[str]) -> list[str]:
        """What Java answers to *lines*, a line each."""
        given = "".join(f"{line}\n" for line in lines)
        run = subprocess.run(self._command, input=given, capture_output=True, text=True, check=False)
        said = run.stdout.splitlines()
        assert run.returncode == 0, run.stderr[-2000:]
        assert len(said) == len(lines), run.stderr[-2000:]
        return said


def differing(cases: Sequence[Sequence[PlanRequest]], said: Sequence[str]) -> Iterator[str]:
    """The first difference of each of *cases* whose answers by Java, *said*, are not ours."""
    left = iter(said)
    for number, case in enumerate(cases):
        answers = [next(left) for _ in case]
        for asked, answer in zip(case, answers, strict=True):
            if not any(_same(answer.split(), ours.split()) for ours in asked.answers):
                before = "\n".join(one.line for one in case[: case.index(asked) + 1])
                yield f"case {number}:\n{before}\nJava: {answer}\nours: {' or '.join(asked.answers)}"
                break


def _same(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    return len(theirs) == len(ours) and all(
        one == other or _close(one, other) for one, other in zip(theirs, ours, strict=True)
    )


def _close(one: str, other: str) -> bool:
    """Whether both are the same number but for rounding."""
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-9)
    except ValueError:
        return False
