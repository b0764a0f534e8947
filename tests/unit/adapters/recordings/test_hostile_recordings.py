"""Recordings that were made to harm, or that suffered: each is refused with the name of the file."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from controller.adapters.recordings import manifest
from controller.adapters.recordings.manifest import RecordingError
from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import StoredRecord
from controller.adapters.recordings.records_file import SCHEMA, packed, read_size
from controller.adapters.recordings.writing import FILE_BYTES, FILE_RECORDS
from tests.effort import tries
from tests.recordings import MemoryRecordLog, made, some_log, stored


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intact") / "new"
    made(folder, some_log())
    return folder


@pytest.fixture
def folder(intact: Path, tmp_path: Path) -> Path:
    shutil.copytree(intact, tmp_path / "new")
    return tmp_path / "new"


def read(folder: Path) -> None:
    recording = Recording(folder)
    for topic in recording.manifest.topics:
        for _ in recording.read(topic, recording.extents(topic)):
            pass


def refused(folder: Path) -> str:
    with pytest.raises(RecordingError) as raised:
        read(folder)
    return str(raised.value)


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "manifest.json"
    fields = json.loads(path.read_bytes())
    edit(fields)
    path.write_text(json.dumps(fields))


def replace_first(folder: Path, content: bytes, **more: Any) -> None:
    """Put *content* in place of the first file, and let the manifest agree."""

    def edit(fields: dict[str, Any]) -> None:
        fields["files"][0] |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **more}

    (folder / "metrics" / "000000.parquet").write_bytes(content)
    change(folder, edit)


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **{"compression": "zstd", "use_dictionary": False, "store_schema": False, **options})
    content: bytes = sink.getvalue().to_pybytes()
    return content


def table_of(values: list[bytes]) -> pa.Table:
    columns = [
        [0] * len(values),
        [*range(len(values))],
        [0] * len(values),
        [None] * len(values),
        values,
        [[]] * len(values),
        [None] * len(values),
        [None] * len(values),
    ]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 5, "4", None, True, 10**30])
def test_another_format_version_is_refused_and_the_converter_is_named(folder: Path, version: object) -> None:
    change(folder, lambda fields: fields.update(version=version))
    assert re.search(r"manifest\.json: the recording has format version .*scripts/convert", refused(folder))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"{}", b'{"format":"other"}', b"\xff\xfe", b"[" * 100_000], ids=range(8)
)
def test_a_manifest_that_is_none(folder: Path, content: bytes) -> None:
    (folder / "manifest.json").write_bytes(content)
    assert "manifest.json: " in refused(folder)


@pytest.mark.parametrize(
    "path",
    [
        "../new/metrics/000000.parquet",
        "/etc/passwd",
        "metrics/../journal/000000.parquet",
        "metrics/1.parquet",
        "",
        "a" * 9999,
    ],
)
def test_a_path_that_leads_elsewhere(folder: Path, path: str) -> None:
    change(folder, lambda fields: fields["files"][0].update(path=path))
    assert "manifest.json: files.0.path" in refused(folder)


@pytest.mark.parametrize(
    "change_of",
    [
        {"records": 5}, {"records": -1}, {"records": 1 << 40}, {"bytes": 1 << 60}, {"sha256": "no"}, {"partitions": []},
        {"partitions": [{"partition": 0, "first": 0, "end": 2, "records": 6}]}, {"unpackedBytes": 1 << 60},
    ],
)  # fmt: skip
def test_a_manifest_that_contradicts_itself(folder: Path, change_of: dict[str, Any]) -> None:
    change(folder, lambda fields: fields["files"][0].update(change_of))
    assert "manifest.json: files.0" in refused(folder)


def test_a_file_listed_twice(folder: Path) -> None:
    change(folder, lambda fields: fields["files"].append(fields["files"][0]))
    assert "lists a path twice" in refused(folder)


def test_a_file_that_was_cut_off_changed_or_lost(folder: Path) -> None:
    path = folder / "metrics" / "000001.parquet"
    content = path.read_bytes()
    for spoilt in (content[:-1], b"", content[:100] + b"\x00" + content[101:], content + b"\x00"):
        path.write_bytes(spoilt)
        assert "000001.parquet: has" in refused(folder)
    path.unlink()
    assert "000001.parquet: cannot be read" in refused(folder)


@pytest.mark.parametrize("name", ["metrics/000000.parquet", "manifest.json"])
def test_links_devices_and_pipes(folder: Path, name: str) -> None:
    path = folder / name
    path.unlink()
    path.symlink_to("/dev/zero")
    assert path.name in refused(folder)
    path.unlink()
    os.mkfifo(path)
    assert f"{path.name}: is not a regular file" in refused(folder)
    path.unlink()
    path.mkdir()
    assert f"{path.name}: is not a regular file" in refused(folder)


def test_a_manifest_and_a_file_that_are_too_large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (folder / "manifest.json").open("ab") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    assert "manifest.json: has 1099511627776 bytes" in refused(folder)


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1" * 20, b"PAR1" + b"\xff" * 90 + b"PAR1", b"x" * 1000])
def test_a_file_that_is_no_parquet(folder: Path, content: bytes) -> None:
    replace_first(folder, content)
    assert "000000.parquet: is not a Parquet file of a recording" in refused(folder)


def test_a_file_with_other_columns(folder: Path) -> None:
    replace_first(folder, parquet(pa.table({"value": [b"x"] * 6})))
    assert "000000.parquet: has the columns value" in refused(folder)


def test_other_records_than_the_manifest_says(folder: Path) -> None:
    replace_first(folder, parquet(table_of([b"x"] * 6)))
    assert "000000.parquet: contains other records" in refused(folder)


def test_an_offset_twice(folder: Path) -> None:
    twice = pa.concat_tables([table_of([b"x"] * 3)] * 2)
    parts = [{"partition": 0, "first": 0, "end": 6, "records": 6}]
    replace_first(folder, parquet(twice), partitions=parts)
    assert "000000.parquet: contains an offset twice" in refused(folder)


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_file_that_unpacks_to_gigabytes(folder: Path, monkeypatch: pytest.MonkeyPatch, dictionary: bool) -> None:
    """Its footer and its pages agree, or a dictionary names one value again and again."""
    monkeypatch.setattr("controller.adapters.recordings.pages.LARGEST_FILE", 1 << 20)
    bomb = parquet(table_of([bytes(1 << 19)] * 6), use_dictionary=["value"] if dictionary else False)
    assert len(bomb) < 5000
    parts = [{"partition": 0, "first": 0, "end": 6, "records": 6}]
    replace_first(folder, bomb, partitions=parts)
    said = refused(folder)
    assert "000000.parquet" in said
    assert ("the layout that trimtab writes" if dictionary else "unpacks to more than") in said


SIX = [{"partition": 0, "first": 0, "end": 6, "records": 6}]


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_an_encoding_that_repeats_what_was_before(folder: Path, encoding: str) -> None:
    """One value of a megabyte, and five that share it: what they unpack to stands in no header."""
    replace_first(folder, parquet(table_of([bytes(1 << 20)] * 6), column_encoding={"value": encoding}), partitions=SIX)
    assert "000000.parquet: column value has a kind of page that trimtab does not write" in refused(folder)


def test_numbers_in_runs_and_pages_of_the_second_version(folder: Path) -> None:
    for options in ({"column_encoding": {"offset": "DELTA_BINARY_PACKED"}}, {"data_page_version": "2.0"}):
        replace_first(folder, parquet(table_of([b"x"] * 6), **options), partitions=SIX)
        assert "has a kind of page that trimtab does not write" in refused(folder)


def nulls(column: str, each: int) -> pa.Table:
    """Six records, and so many nulls, or empty headers, in the list of *column* of the first."""
    table = table_of([b"x"] * 6)
    at, kind = table.schema.get_field_index(column), SCHEMA.field(column).type.value_type
    values = pa.nulls(each, kind) if column == "digits" else pa.array([{"name": "", "value": b""}] * each, kind)
    lists = pa.ListArray.from_arrays(pa.array([0, *[each] * 6], pa.int32()), values)
    return table.set_column(at, SCHEMA.field(column), lists.cast(SCHEMA.field(column).type))


@pytest.mark.parametrize(("column", "each", "most"), [("digits", 2_000_000, 16 << 20), ("headers", 5000, 1 << 20)])
def test_a_few_bytes_that_stand_for_millions_of_values(
    folder: Path, monkeypatch: pytest.MonkeyPatch, column: str, each: int, most: int
) -> None:
    monkeypatch.setattr("controller.adapters.recordings.pages.LARGEST_FILE", most)
    bomb = parquet(nulls(column, each))
    assert len(bomb) < 10_000
    replace_first(folder, bomb, partitions=SIX)
    assert f"000000.parquet: unpacks to more than {most} bytes" in refused(folder)


def test_several_row_groups(folder: Path) -> None:
    replace_first(folder, parquet(table_of([b"x"] * 6), row_group_size=2), partitions=SIX)
    assert "000000.parquet: has 3 row groups" in refused(folder)


@pytest.mark.parametrize("header", [b"\x19" * 9000, b"\x1c" * 9000, b"\x19\xf2\xff\xff\xff\x7f" + b"\x01" * 9000])
def test_a_page_whose_header_is_deep_or_long(folder: Path, header: bytes) -> None:
    noise = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(400))
    content = parquet(table_of([noise] * 6), use_dictionary=False)
    start = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0).column(4).data_page_offset
    replace_first(folder, content[:start] + header + content[start + len(header) :], partitions=SIX)
    assert "000000.parquet: a page's header cannot be read" in refused(folder)


@pytest.mark.parametrize(
    ("digits", "decimals"),
    [([1, 2], b"\0"), ([1], b""), ([1], None), (None, b""), ([1, None], b"\0\0"), ([-1, 2], b"\0\0")],
)
def test_numbers_that_do_not_fit_the_text(folder: Path, digits: list[int] | None, decimals: bytes | None) -> None:
    columns = {**table_of([b"[\0,\0]"] * 6).to_pydict(), "digits": [digits] * 6, "decimals": [decimals] * 6}
    parts = [{"partition": 0, "first": 0, "end": 6, "records": 6}]
    replace_first(folder, parquet(pa.table(columns, schema=SCHEMA)), partitions=parts)
    assert "000000.parquet: has" in refused(folder)


@pytest.mark.slow
def test_every_byte_of_a_file_may_be_wrong(folder: Path) -> None:
    """Whatever is changed, with the manifest agreeing: the records, or an error that names the file."""
    good = (folder / "metrics" / "000000.parquet").read_bytes()
    for at in range(0, len(good), 7 * tries(plain=5, thorough=1)):
        replace_first(folder, good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        said = "000000.parquet"
        try:
            read(folder)
        except RecordingError as error:
            said = str(error)
        assert "000000.parquet" in said


def test_the_limits_hold_for_what_is_written() -> None:
    largest = stored(0, b"{" + b"1," * (4 << 20))
    assert FILE_BYTES + 2 * read_size(largest) < manifest.LARGEST_FILE
    assert FILE_RECORDS < manifest.MOST_RECORDS


@pytest.mark.parametrize(
    "record",
    [
        stored(1, b'{"a":[' + b"1," * 5000 + b"1]}"),
        stored(1, b'{"a":' + b"[1]" * 3 + b"}"),
        stored(1, b"\xff" * 5000, key=b"k" * 300),
        stored(1, b"", headers=(("", b""),) * 1000),
        stored(1, b"", key=None),
    ],
)  # fmt: skip
def test_no_file_that_is_written_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, record: StoredRecord
) -> None:
    """What a reader reckons for a file is no more than what the writer reckoned."""
    records = [record._replace(offset=offset) for offset in range(6)]
    monkeypatch.setattr("controller.adapters.recordings.pages.LARGEST_FILE", sum(map(read_size, records)))
    parts = [{"partition": 0, "first": 0, "end": 6, "records": 6}]
    replace_first(folder, packed(records), partitions=parts)
    read(folder)


def test_a_record_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    log = MemoryRecordLog({"metrics": [stored(5, b"", headers=(("", b""),) * 1_500_000)]})
    with pytest.raises(RecordingError, match="metrics, partition 0, offset 5: reading this record back"):
        made(tmp_path / "other", log)
