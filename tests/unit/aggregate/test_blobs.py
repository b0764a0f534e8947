"""Blobs that states and snapshots are kept in: any text comes back as it was."""

from collections.abc import Callable

import numpy as np
import pytest

from controller.aggregate.columns.blobs import names_from_bytes, names_to_bytes, pack, unpack
from controller.model.errors import StateError


def test_any_text_comes_back_also_halves_of_a_character() -> None:
    halves = "\ud83d" + "\ude00"
    blob = pack(3, {"names": ["é", halves, "a"]}, {"numbers": np.arange(3)})
    found = unpack(blob, versions={3})
    assert (found.version, found.header) == (3, {"names": ["é", halves, "a"]})
    assert len(found.header["names"][1]) == 2
    assert found.arrays["numbers"].tolist() == [0, 1, 2]


def test_what_trimtab_did_not_write_is_told_from_what_is_damaged() -> None:
    whole = pack(3, {}, {})
    with pytest.raises(StateError, match="trimtab did not write it"):
        unpack(b"x" + whole[1:], versions={3})
    with pytest.raises(StateError, match="is truncated: its header ends at byte"):
        unpack(whole[:-1], versions={3})
    assert unpack(whole, versions={3}).version == 3


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda blob: blob[:-1], r"truncated in column numbers: 10 values of <i8 do not fit into \d+ bytes"),
        (lambda blob: blob + b"x", r"has \d+ bytes, but its columns end at byte \d+"),
        (lambda blob: blob.replace(b"[10]", b"[11]"), "truncated in column numbers: 11 values"),
        (lambda blob: blob.replace(b"[10]", b"[-1]"), "truncated in column numbers: -1 values"),
        (lambda blob: blob.replace(b'{"version"', b'x"version"'), "header of a stored state cannot be read"),
        (lambda blob: blob.replace(b'"version"', b'"v_rsion"'), "header of a stored state cannot be read"),
    ],
)
def test_what_is_damaged_is_told(spoil: Callable[[bytes], bytes], said: str) -> None:
    with pytest.raises(StateError, match=said):
        unpack(spoil(pack(3, {}, {"numbers": np.arange(10)})), versions={3})


def test_names_that_are_cut_off_anywhere_are_refused() -> None:
    stored = names_to_bytes(["broker-1", "b", ""])
    assert names_from_bytes(stored) == ["broker-1", "b", ""]
    for end in range(len(stored)):
        with pytest.raises(StateError):
            names_from_bytes(stored[:end])
    with pytest.raises(StateError):
        names_from_bytes(np.concatenate([stored, stored[-1:]]))
