"""Pulsar's real classes on a load of ours: java/DecisionsBench.java, compiled when it is asked for."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.adapters.disk import jars
from controller.adapters.disk.java_compiler import compile_java
from controller.adapters.disk.scratch import scratch_folder
from controller.bench.decisions import AT_ONCE, AVERAGES, bundle_lines
from controller.model.errors import TrimtabError
from controller.model.load import ClusterView

_SOURCE: Final = Path(__file__).parent / "java" / "DecisionsBench.java"
#: The set of conf/jars.lock.
_JARS: Final = "pulsar-broker"
_NAMES: Final = (
    "AvgShedder",
    "OverloadShedder",
    "ThresholdShedder",
    "TransferShedder",
    "UniformLoadShedder",
    "BundleSplitterTask",
    AVERAGES,
)
#: Classes as they are: what they would load to be verified is not among the jars.
UNVERIFIED: Final = (
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    "-Dslf4j.internal.verbosity=ERROR",
    "-Dlog4j2.loggerContextFactory=org.apache.logging.log4j.simple.SimpleLoggerContextFactory",
)
#: A heap that is not cleaned within a decision.
_FLAGS: Final = ("-Xms2g", "-Xmx2g", *UNVERIFIED)


class JavaRival:
    """A JVM that decides when asked."""

    names = _NAMES

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._read_line("ready")

    def decide(self, name: str) -> tuple[float, int]:
        """Milliseconds that Pulsar's class called *name* took, and how many bundles it chose."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        _, ms, chosen = self._read_line(name).split()
        return float(ms), int(chosen)

    def _read_line(self, begins: str) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith(begins):
            self._process.kill()
            raise TrimtabError(f"{_SOURCE.name} ended without an answer to {begins!r}; what it said is above: {line!r}")
        return line


@contextmanager
def java_rival(view: ClusterView) -> Iterator[JavaRival]:
    """A rival that has read *view*; gone at the end.  Fetches the jars of Pulsar's broker where they are missing."""
    java, used = jars.java(), jars.fetch(_JARS)
    classpath = ":".join(map(str, used))
    with scratch_folder("trimtab-bench-") as folder:
        compile_java([_SOURCE], used, folder)
        load = folder / "load.txt"
        load.write_text("\n".join(_lines(view)), encoding="ascii")
        process = subprocess.Popen(
            [java, *_FLAGS, "-cp", f"{folder}:{classpath}", _SOURCE.stem, str(load)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sys.stderr.fileno(),
            text=True,
        )
        try:
            yield JavaRival(process)
        finally:
            process.kill()
            process.communicate()


def _lines(view: ClusterView) -> Iterator[str]:
    for key, value in AT_ONCE.items():
        yield f"option {key} {value}"
    brokers = view.brokers
    rows = zip(brokers.names, brokers.usage.tolist(), brokers.limit.tolist(), brokers.load.tolist(), strict=True)
    for name, usage, limit, load in rows:
        yield " ".join(map(str, ("broker", name, *usage, *limit, *load)))
    yield from bundle_lines(view.bundles)
