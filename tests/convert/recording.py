"""Recordings of the formats 1 to 3.

The files of records have not changed.  Older manifests lack guardrails that were added later; they get the values under
which the recorded decisions were made.
"""

import json
import shutil
from pathlib import Path
from typing import Any, Final

_OLD_VERSIONS: Final = (1, 2, 3)
_NEW_VERSION: Final = 4
#: Guardrails that older manifests may lack, with the value that switches each off.
_SWITCHED_OFF: Final = {
    "unproven_bundles": "unlimited",
    "confirm_intervals": "unlimited",
    "unconfirmed_brokers": "unlimited",
    "brokers_balance_unknown": "ignore",
}


def convert_recording(old: Path, new: Path) -> None:
    """Copy the recording in the folder *old* to *new*.  ValueError where it is not of an older format."""
    manifest: dict[str, Any] = json.loads((old / "manifest.json").read_bytes())
    if manifest.get("format") != "trimtab-recording" or manifest.get("version") not in _OLD_VERSIONS:
        raise ValueError(f"{old}: not a recording of the formats {', '.join(map(str, _OLD_VERSIONS))}")
    settings = manifest["settings"]
    settings["guardrails"] = {**_SWITCHED_OFF, **settings["guardrails"]}
    shutil.copytree(old, new)
    text = json.dumps(manifest | {"version": _NEW_VERSION}, separators=(",", ":"))
    (new / "manifest.json").write_text(f"{text}\n", encoding="utf-8")
