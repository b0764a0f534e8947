"""Where the page and REST read and change the proposals of one cluster."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from controller.adapters.election.proposals import Proposals, ProposalStore
from controller.model.errors import TrimtabError
from controller.web.cached import Cached

#: What lists show is no older.
_CACHED_SECONDS: Final = 2.0
_TURN_SECONDS: Final = 8.0


class ProposalDesk:
    """The proposals in the store that *open_store* opens when it is first needed.  For several threads."""

    def __init__(self, open_store: Callable[[], ProposalStore]) -> None:
        self._open = open_store
        self._held_store: ProposalStore | None = None
        self._turn = threading.Lock()
        #: All proposals, for those who look.
        self.cached: Cached[Proposals] = Cached(self._read, _CACHED_SECONDS)

    @contextmanager
    def store(self) -> Iterator[ProposalStore]:
        """The store, for this thread alone.  TrimtabError where it cannot be had soon."""
        if not self._turn.acquire(timeout=_TURN_SECONDS):
            raise TrimtabError("others wait for the proposals, which do not answer")
        try:
            if self._held_store is None:
                self._held_store = self._open()
            yield self._held_store
        finally:
            self._turn.release()

    def close(self) -> None:
        """Close the store."""
        with self._turn:
            if self._held_store is not None:
                self._held_store.close()

    def _read(self) -> Proposals:
        with self.store() as store:
            return store.read_all()
