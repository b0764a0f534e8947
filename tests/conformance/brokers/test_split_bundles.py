import pytest

from controller.model.errors import TrimtabError
from tests.conformance.brokers.split_bundles import with_split


def test_a_split_replaces_the_bundle_by_its_parts() -> None:
    assert with_split((0, 10, 20), 0, 10, (4,)) == (0, 4, 10, 20)
    assert with_split((0, 10, 20), 10, 20, (12, 15)) == (0, 10, 12, 15, 20)


def test_an_unknown_bundle_is_not_split() -> None:
    assert with_split((0, 10, 20), 0, 20, (4,)) is None
    assert with_split((0, 10, 20), 10, 15, (99,)) is None


def test_a_bundle_too_small_to_split_is_refused_even_if_unknown() -> None:
    with pytest.raises(TrimtabError, match="cannot be split further"):
        with_split((0, 10, 20), 5, 6, ())
