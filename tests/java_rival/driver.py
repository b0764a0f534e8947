"""A JVM with the classes of one release of Pulsar, which is asked in JSON: ``java/cycles`` and ``java/vectors``."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from controller.adapters.disk import jars
from controller.adapters.disk.java_compiler import compile_java
from controller.bench.java_rival import UNVERIFIED
from tests.java_rival.releases import Release

_JAVA: Final = Path(__file__).with_name("java")
_SOURCES: Final = ("cycles", "vectors")
_MAIN: Final = "Cycles"


class Driver:
    """A running JVM; a context manager that ends it."""

    def __init__(self, release: Release, folder: Path) -> None:
        """Compile the driver for *release* into *folder*, and start it.

        Raises SettingsError and TrimtabError as ``Release.jars`` does.
        """
        self.version = release.version
        used = release.jars()
        compile_java([path for name in _SOURCES for path in sorted((_JAVA / name).glob("*.java"))], used, folder)
        classpath = ":".join(map(str, [folder, *used]))
        command = [release.java(), "-Xmx512m", *jars.SHORT_LIFE, *UNVERIFIED, "-cp", classpath, _MAIN]
        self._errors = (folder / "stderr.txt").open("w+", encoding="utf-8")
        self._jvm = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, encoding="utf-8"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._jvm.kill()
        self._jvm.communicate()
        self._errors.close()

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a case of a class, to a case of whole cycles that begins, or to a round of it."""
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.write(json.dumps(question) + "\n")
        self._jvm.stdin.flush()
        answer = self._jvm.stdout.readline()
        if not answer:
            self._jvm.wait()
            self._errors.seek(0)
            raise AssertionError(f"the driver ended: {self._errors.read()[-3000:]}")
        found: dict[str, Any] = json.loads(answer)
        return found
