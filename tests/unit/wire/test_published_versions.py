"""What every published release wrote is read by this one; and its schemas are kept to.

tests/published has a folder for each release.  Nothing in it ever changes.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from controller.aggregate.shard import state_blob
from controller.cli.shared.common_options import own_version
from controller.settings.broker_conf import read_broker_conf
from controller.settings.trimtab_toml import read_settings
from controller.wire.base import encode, read_object, validate
from controller.wire.controls import parse_controls
from controller.wire.journal_records import EntryReader
from controller.wire.schemas import MODELS, schema_files
from tests.published.__main__ import CONTROLS, FOLDER, RECORDS, SCHEMAS, STATE, controls, records, state

RELEASES: Final = sorted(path for path in FOLDER.iterdir() if path.name[0].isdigit())
EACH: Final = [path for release in RELEASES for path in sorted((release / RECORDS).iterdir())]
#: What trimtab writes, and others read: what a record must have, it keeps.
WRITTEN: Final = ("trimtab.", "result", "dead_letter")
#: Files that are carried out soon after they were written, by the same release.
OF_ONE_DAY: Final = {"plan"}


def test_this_release_has_a_sample_of_every_record() -> None:
    assert own_version() in [path.name for path in RELEASES], "python -m tests.published"
    names = {name for name in MODELS if not name.startswith("answer.")} - OF_ONE_DAY
    assert names == {path.stem for path in (FOLDER / own_version() / RECORDS).iterdir()} == records().keys()


def _kept(published: Any, now: Any, where: str) -> list[str]:
    """Places of *published* that *now* has not, or has with another value."""
    if isinstance(published, dict) and isinstance(now, dict):
        return [
            lost
            for key, value in published.items()
            for lost in (_kept(value, now[key], f"{where}.{key}") if key in now else [f"{where}.{key}"])
        ]
    return [] if published == now else [where]


@pytest.mark.parametrize("path", EACH, ids=lambda path: f"{path.parents[1].name} {path.stem}")
def test_a_published_record_is_read_and_nothing_in_it_is_lost(path: Path) -> None:
    published = path.read_bytes()
    record = validate(MODELS[path.stem], published)
    assert _kept(read_object(published), json.loads(encode(record)), path.stem) == []


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_a_published_journal_is_read_from_its_first_entry_to_its_last(release: Path) -> None:
    reader = EntryReader(None)
    whole, delta = (
        reader.read((release / RECORDS / f"journal.{name}.json").read_bytes())
        for name in ("decision", "decision_delta")
    )
    assert whole is not None
    assert delta is not None
    assert delta.missing is None  # type: ignore[union-attr]
    assert delta.entry.memory.last_interval == delta.interval > whole.interval  # type: ignore[union-attr]


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_a_published_state_is_the_state_that_the_same_records_make_now(release: Path) -> None:
    read = state_blob.load((release / STATE).read_bytes())
    assert state_blob.dump(read) == state_blob.dump(state())


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_published_settings_and_controls_are_read(release: Path) -> None:
    assert read_settings(release / "trimtab.toml").cluster.name == "standalone"
    assert "loadBalancerLoadSheddingStrategy" in read_broker_conf(release / "broker.conf")
    assert parse_controls((release / CONTROLS).read_bytes()) == controls()


@cache
def _schemas() -> dict[str, str]:
    return schema_files()


def _definitions(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"": schema, **schema.get("$defs", {})}


@pytest.mark.parametrize(
    "path",
    [path for release in RELEASES for path in sorted((release / SCHEMAS).iterdir())],
    ids=lambda path: f"{path.parents[1].name} {path.stem}",
)
def test_a_published_schema_is_kept_to(path: Path) -> None:
    published = _definitions(json.loads(path.read_text(encoding="utf-8")))
    now = _definitions(json.loads(_schemas()[path.name]))
    for name, definition in published.items():
        assert definition.get("properties", {}).keys() <= now[name].get("properties", {}).keys()
        before, after = set(definition.get("required", ())), set(now[name].get("required", ()))
        if path.stem.startswith(WRITTEN):
            assert before <= after, f"{name}: subscribers count on these fields"
        if not path.stem.startswith("trimtab."):
            assert after <= before, f"{name}: a producer of that release does not write these fields"


@pytest.mark.parametrize(
    ("published", "now", "lost"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["r.a.b"]),
        ({"a": 1}, {"b": 1}, ["r.a"]),
        ({"a": [1, 2]}, {"a": [1]}, ["r.a"]),
    ],
)
def test_a_changed_or_missing_value_is_found(published: Any, now: Any, lost: list[str]) -> None:
    assert _kept(published, now, "r") == lost
