"""The contract of controller.adapters.election.notifications."""

from collections.abc import Callable
from typing import TypeAlias

from controller.adapters.election.notifications import NotificationStore

#: One more process's, of the same cluster; the fixture closes it at the end.
OpenStore: TypeAlias = Callable[[], NotificationStore]


class NotificationStoreContract:
    """Inherited by the tests of each implementation, which give the fixture ``open_store``."""

    def test_one_of_several_sends(self, open_store: OpenStore) -> None:
        stores = [open_store() for _ in range(3)]
        assert [each.sends() for each in stores] == [True, False, False]
        assert [each.sends() for each in stores] == [True, False, False]

    def test_another_sends_when_the_sender_closes(self, open_store: OpenStore) -> None:
        one, other = open_store(), open_store()
        assert (one.sends(), other.sends()) == (True, False)
        one.close()
        assert other.sends()

    def test_at_first_there_is_no_state(self, open_store: OpenStore) -> None:
        store = open_store()
        assert store.sends()
        assert store.read()[0] is None

    def test_the_next_sender_reads_what_the_one_before_wrote(self, open_store: OpenStore) -> None:
        one, other = open_store(), open_store()
        assert one.sends()
        version = one.write(b"1", one.read()[1])
        assert version is not None
        assert one.write(b"22", version) is not None
        one.close()
        assert other.sends()
        assert other.read()[0] == b"22"

    def test_a_state_that_was_replaced_meanwhile_is_not_overwritten(self, open_store: OpenStore) -> None:
        store = open_store()
        assert store.sends()
        before = store.read()[1]
        assert store.write(b"1", before) is not None
        assert store.write(b"2", before) is None
        assert store.read()[0] == b"1"
