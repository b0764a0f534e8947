"""The settings to begin with: the commented file that comes with trimtab, with a user's own values in it.

Only lines change, so every comment stays, and there is one file to keep current: conf/trimtab.toml.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from controller.model.errors import SettingsError

#: Section and key -> value.
Values: TypeAlias = Mapping[tuple[str, str], str | int | Sequence[str]]

_SECTION: Final = re.compile(r"(?P<hidden># )?\[(?P<name>[\w.]+)\]")
_KEY: Final = re.compile(r"(?P<key>[\w.]+) = (?P<value>[^#]*?)(?P<gap> *)(?P<comment>#.*)?")
_HIDDEN: Final = "# "
#: Where comments begin, in characters.
_COMMENT_AT: Final = 32


def starter(template: str, values: Values, *, shown: Sequence[str] = (), left_out: Sequence[str] = ()) -> str:
    """*template*, a TOML file, with *values*, without the sections *left_out*, and with those *shown* switched on.

    A section that is switched on is a comment in the template.  A value, or a section, that the template has no line
    for raises SettingsError.
    """
    section, keep, missing = "", True, dict.fromkeys([*values, *((name, "") for name in [*shown, *left_out])])
    lines = []
    for line in template.splitlines():
        found = _SECTION.match(line)
        if found and (not found["hidden"] or found["name"] in shown):
            section, keep = found["name"], found["name"] not in left_out
            missing.pop((section, ""), None)
        elif not line and section in shown:
            section = ""  # a section that was a comment ends at an empty line
        text = line.removeprefix(_HIDDEN) if section in shown else line
        key = _KEY.fullmatch(text)
        if key and (section, key["key"]) in values:
            text = _line(key["key"], values[section, key["key"]], key["comment"])
            missing.pop((section, key["key"]), None)
        if keep:
            lines.append(text)
    if missing:
        raise SettingsError(
            f"the template of the settings has no line for {[f'[{s}] {k}'.strip() for s, k in missing]}"
        )
    return "\n".join(lines) + "\n"


def _line(key: str, value: str | int | Sequence[str], comment: str | None) -> str:
    # JSON's strings are TOML's, but for the character DEL, which no setting may hold.
    made = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    return f"{made:<{_COMMENT_AT - 1}} {comment}" if comment else made
