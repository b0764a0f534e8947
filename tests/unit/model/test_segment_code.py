"""Segments of scalable topics as numbers: which topic, and which keys."""

import numpy as np
import pytest

from controller.model.names import topic_hash
from controller.model.segment_code import NO_SEGMENT, key_ranges_of, places_of, segment_code


@pytest.mark.parametrize(
    ("local", "keys"),
    [("orders", (0, 0x3FFF)), ("a/b", (0x8000, 0xFFFF)), ("ünï\ncode", (0xFFFF, 0xFFFF)), ("x/0000-3fff-1", (0, 0))],
)
def test_a_code_says_the_place_of_the_topic_and_the_range_of_the_keys(local: str, keys: tuple[int, int]) -> None:
    codes = np.array([segment_code(f"segment://t1/sc/{local}/{keys[0]:04x}-{keys[1]:04x}-12")])
    assert places_of(codes).tolist() == [topic_hash(f"topic://t1/sc/{local}")]
    assert [part.tolist() for part in key_ranges_of(codes)] == [[keys[0]], [keys[1]]]


@pytest.mark.parametrize(
    "name",
    [
        "persistent://t1/sc/s1/0000-3fff-0", "topic://t1/sc/s1", "segment://t1/sc/s1", "segment:///0000-3fff-0",
        "segment://t1/sc/s1/4000-3fff-0", "segment://t1/sc/s1/0-3fff-0", "segment://t1/sc/s1/0000-3FFF-0",
        "segment://t1/sc/s1/0000-3fff-", "segment://t1/sc/s1/0000-3fff-0\n", "segment://t1/sc/s1/0000-3fff-٣", "",
    ],
)  # fmt: skip
def test_what_no_broker_writes_is_no_segment(name: str) -> None:
    assert segment_code(name) == NO_SEGMENT
