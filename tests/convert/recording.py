"""Recordings of the formats 1 to 4, and incidents that hold one.

Their files have the numbers of JSON in columns of their own, and rows that repeat the text of the row before; now each
row has its whole value.  Manifests of the formats 1 to 3 lack guardrails that were added later; they get the values
under which the recorded decisions were made.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow.parquet as pq

from controller.adapters.recordings.incident_file import unpacked_incident, write_incident
from controller.adapters.recordings.manifest import FORMAT_VERSION
from controller.adapters.recordings.record_log import StoredRecord
from controller.adapters.recordings.records_file import packed

_OLD_VERSIONS: Final = (1, 2, 3, 4)
#: Guardrails that older manifests may lack, with the value that switches each off.
_SWITCHED_OFF: Final = {
    "unproven_bundles": "unlimited",
    "confirm_intervals": "unlimited",
    "unconfirmed_brokers": "unlimited",
    "brokers_balance_unknown": "ignore",
}
#: Stands in a text where a number was.
_HOLE: Final = b"\0"
#: A value that begins with it is a sweep's id: the row has the text of the row before.
_MARK: Final = b"\1"
_SWEEP_ID: Final = re.compile(rb'"sweepId":"([^"\\]*)"')


def convert_recording(old: Path, new: Path) -> None:
    """Copy the recording in the folder *old* to *new*.  ValueError where it is not of an older format."""
    manifest: dict[str, Any] = json.loads((old / "manifest.json").read_bytes())
    if manifest.get("format") != "trimtab-recording" or manifest.get("version") not in _OLD_VERSIONS:
        raise ValueError(f"{old}: not a recording of the formats {', '.join(map(str, _OLD_VERSIONS))}")
    settings = manifest["settings"]
    settings["guardrails"] = {**_SWITCHED_OFF, **settings["guardrails"]}
    shutil.copytree(old, new)
    for file in manifest["files"]:
        content = packed(list(_records(new / file["path"])))
        (new / file["path"]).write_bytes(content)
        file |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    text = json.dumps(manifest | {"version": FORMAT_VERSION}, separators=(",", ":"))
    (new / "manifest.json").write_text(f"{text}\n", encoding="utf-8")


def convert_incident(old: Path, new: Path) -> None:
    """Write the incident in the file *old* to *new*.  ValueError where its recording is not of an older format."""
    with unpacked_incident(old) as incident, TemporaryDirectory() as folder:
        convert_recording(incident.recording, Path(folder, "recording"))
        write_incident(new, incident.about, Path(folder, "recording"))


def _records(path: Path) -> Iterator[StoredRecord]:
    rows = pq.read_table(path).to_pylist()
    begin = 0
    while begin < len(rows):
        end = begin + 1
        while end < len(rows) and rows[end]["decimals"] is not None and rows[end]["value"].startswith(_MARK):
            end += 1
        yield from map(_record, _whole(rows[begin:end]))
        begin = end


def _whole(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """*rows*, all but the first of which repeat its text, with texts and numbers of their own."""
    first = rows[0]
    steps = [step for row in rows[1:] for step in row["digits"]]
    order = sorted(range(len(first["digits"] or ())), key=lambda place: first["digits"][place])
    match = _SWEEP_ID.search(first["value"])
    for number, row in enumerate(rows[1:]):
        row["digits"] = list(rows[number]["digits"])
        for place, at in enumerate(order):
            step = steps[place * (len(rows) - 1) + number] & (1 << 64) - 1
            row["digits"][at] += (step >> 1) ^ -(step & 1)
        sweep_id = row["value"].removeprefix(_MARK)
        row["value"] = first["value"]
        if match is not None:
            row["value"] = first["value"][: match.start(1)] + sweep_id + first["value"][match.end(1) :]
    return rows


def _record(row: dict[str, Any]) -> StoredRecord:
    value = row["value"]
    if row["decimals"] is not None:
        texts = value.split(_HOLE)
        numbers = [_number(*pair) for pair in zip(row["digits"], row["decimals"], strict=True)]
        value = b"".join(part for pair in zip(texts, [*numbers, b""], strict=True) for part in pair)
    headers = tuple((each["name"], each["value"]) for each in row["headers"] or ())
    return StoredRecord(row["partition"], row["offset"], row["timestamp"], row["key"], value, headers)


def _number(digits: int, decimals: int) -> bytes:
    text = b"%0*d" % (decimals + 1, digits)
    return text[: len(text) - decimals] + b"." + text[len(text) - decimals :] if decimals else text
