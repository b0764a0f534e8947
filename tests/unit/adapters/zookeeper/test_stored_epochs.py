"""What the node of an election says of its leaderships."""

import pytest

from controller.model.leadership import epoch_of


@pytest.mark.parametrize(
    ("stored", "epoch"),
    [
        (b"0", 0),
        (b"12\n", 12),
        (b"", None),
        (b"-1", None),
        (b"1e3", None),
        (b"9" * 19, None),  # more than any counter has: 64 bits do not hold the next one
        (b"9" * 5_000, None),  # more than Python reads as a number
        ("\N{ARABIC-INDIC DIGIT ONE}".encode(), None),
    ],
)
def test_only_what_a_leadership_can_be_numbered_is_an_epoch(stored: bytes, epoch: int | None) -> None:
    assert epoch_of(stored) == epoch
