"""The defaults of Pulsar's options, read from the class ServiceConfiguration of each release.

``python -m tests.java_rival.defaults`` prints what changes from one release to the next, of the options that trimtab
knows: what controller/model/pulsar_version.py has to say.  The class is not loaded, so that its jar alone is needed:
javap prints the constructor, whose instructions assign the defaults.
"""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Final

from controller.adapters.disk import jars
from controller.model.errors import SettingsError
from controller.settings.known_options import KNOWN_KEYS

LOCK: Final = Path(__file__).with_name("defaults.lock")
_CLASS: Final = "org.apache.pulsar.broker.ServiceConfiguration"
_FIELD: Final = re.compile(r"^  private (?:final )?([\w.<>$, \[\]]+) (\w+);", re.MULTILINE)
_STEP: Final = re.compile(r"\s+\d+: (\w+)\s*([^/\n]*)(?://\s*(.*))?")


def releases() -> list[str]:
    """The releases whose class is pinned, oldest first."""
    return list(tomllib.loads(LOCK.read_text()))


def defaults(release: str) -> dict[str, str]:
    """Option -> its default in *release*, as broker.conf would have it; of a set or of an object without, "".

    SettingsError where there is no javap, and as ``jars.fetch``.
    """
    javap = shutil.which("javap")
    if javap is None:
        raise SettingsError("there is no javap: install a JDK")
    [jar] = jars.fetch(release, jars.FOLDER / "defaults", LOCK)
    asked = [javap, "-cp", str(jar), "-p", "-c", _CLASS]
    text = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    kinds = {name: kind for kind, name in _FIELD.findall(text)}
    found = {name: {"boolean": "false", "int": "0", "long": "0"}.get(kind, "") for name, kind in kinds.items()}
    constructor = text[text.index(f"public {_CLASS}();") :].split("\n\n", 1)[0]
    for name, values in _assigned(constructor):
        if values:
            found[name] = {"0": "false", "1": "true"}[values[0]] if kinds[name] == "boolean" else ",".join(values)
    return found


def _assigned(constructor: str) -> list[tuple[str, list[str]]]:
    """Each field that *constructor* assigns, with the constants that its value is made of."""
    found, values, in_list = list[tuple[str, list[str]]](), list[str](), False
    for line in constructor.splitlines():
        step = _STEP.match(line)
        if step is None:
            continue
        name, argument, comment = step[1], step[2].strip(), step[3] or ""
        if name == "aload_0":
            values, in_list = [], False
        elif name == "anewarray":
            values, in_list = [], True
        elif name == "putfield":
            found.append((comment.removeprefix("Field ").split(":")[0], values))
        elif name.startswith("ldc"):
            kind, _, constant = comment.partition(" ")
            values.append(constant if kind == "String" else constant.rstrip("dlf"))
        elif not in_list and name[1:].startswith("const_") and name != "aconst_null":
            values.append(name.partition("const_")[2].replace("m1", "-1"))
        elif not in_list and name in ("bipush", "sipush"):
            values.append(argument)
    return found


def main() -> None:
    """Print each option that changes, and when."""
    by_release = {release: defaults(release) for release in releases()}
    for option in sorted(KNOWN_KEYS):
        steps: list[tuple[str, str]] = []
        for release, found in by_release.items():
            value = found.get(option, "not there")
            if not steps or steps[-1][1] != value:
                steps.append((release, value))
        if len(steps) > 1:
            print(option, *(f"{release}: {value}" for release, value in steps), sep="\n  ")  # noqa: T201


if __name__ == "__main__":
    main()
