"""How the JVM of Spark compiles, and collects garbage, where the user does not say otherwise (ADR 6)."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from controller.settings.small_file import read_small_file

#: Java's second compiler waits ten times as long as by default before it compiles a method.  At the start it would
#: compile much that is never run again, which takes a third of a start's processor time; what a micro-batch runs for
#: each record still reaches it within the first one.
_COMPILER: Final = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000"
    " -XX:Tier4BackEdgeThreshold=400000"
)
#: The serial collector of garbage: less memory and processor time than Java's default one, no longer delays.
_COLLECTOR: Final = "-XX:+UseSerialGC"
#: Java ends where two options name a collector each.
_NAMES_COLLECTOR: Final = re.compile(r"-XX:\+Use\w*GC\b")
#: Variables with options that Java, or spark-submit, reads.
_VARIABLES: Final = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_SPARK_OPTION: Final = "spark.driver.extraJavaOptions"


def java_options(conf: Mapping[str, str], environment: Mapping[str, str], home: Path) -> str:
    """Options of the JVM for Spark's options *conf* and the Spark in *home*; the user's own may follow them."""
    chosen = any(_NAMES_COLLECTOR.search(text) for text in _users(conf, environment, home))
    return _COMPILER if chosen else f"{_COMPILER} {_COLLECTOR}"


def _users(conf: Mapping[str, str], environment: Mapping[str, str], home: Path) -> Iterator[str]:
    yield conf.get(_SPARK_OPTION, "")
    for name in _VARIABLES:
        yield environment.get(name, "")
    folder = Path(environment.get("SPARK_CONF_DIR") or home / "conf")
    try:
        yield read_small_file(folder / "spark-defaults.conf").decode(errors="replace")
    except OSError:
        return  # there is none, or Spark says what is wrong with it
