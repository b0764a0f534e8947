"""Blobs that states and snapshots are kept in: any text comes back as it was."""

import numpy as np

from controller.aggregate.columns.blobs import pack, unpack


def test_any_text_comes_back_also_halves_of_a_character() -> None:
    halves = "\ud83d" + "\ude00"
    blob = pack(3, {"names": ["é", halves, "a"]}, {"numbers": np.arange(3)})
    found = unpack(blob, versions={3})
    assert (found.version, found.header) == (3, {"names": ["é", halves, "a"]})
    assert len(found.header["names"][1]) == 2
    assert found.arrays["numbers"].tolist() == [0, 1, 2]
