"""What an executor finds in the metadata of its group's offsets."""

import pytest

from controller.adapters.kafka.inbox import StoredState, stored_state
from controller.model.errors import StateError


def test_the_epoch_and_what_was_begun_are_found_and_without_metadata_nothing() -> None:
    assert stored_state('{"epoch":7,"begun":["a","b"]}', "g, 0") == StoredState(epoch=7, begun=("a", "b"))
    assert stored_state("", "g, 0") == StoredState()


@pytest.mark.parametrize(
    "metadata",
    [
        "reset by somebody",
        "[]",
        '{"epoch":-1}',
        '{"epoch":"7"}',
        '{"epoch":99999999999999999999}',
        '{"begun":[["a"]]}',
        '{"begun":"a"}',
        "[" * 4000,
    ],
)
def test_what_others_committed_there_is_named_and_not_guessed_at(metadata: str) -> None:
    with pytest.raises(StateError, match="group 'g', partition 3, are no state of an executor"):
        stored_state(metadata, "group 'g', partition 3")
