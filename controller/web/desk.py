"""Where the page and REST read and change what people set: one store, which one thread uses at a time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

from controller.model.errors import NothingFoundError, PlanRefusedError, ProposalRefusedError, TrimtabError, WireError
from controller.web.access.viewer import RefusedError
from controller.web.cached import Cached

#: Nobody waits longer for others of this server, nor does its end.
TURN_SECONDS: Final = 8.0


class Closable(Protocol):
    """What has a connection."""

    def close(self) -> None:
        """Close it."""
        ...


S = TypeVar("S", bound=Closable)
V = TypeVar("V")


class Desk(Generic[S, V]):
    """The store that *open_store* opens when it is first needed.  For several threads.

    *name*: of what is in it, in the plural.  *read_store* reads it for those who look, who get nothing that is older
    than *seconds*.
    """

    def __init__(self, open_store: Callable[[], S], read_store: Callable[[S], V], *, name: str, seconds: float) -> None:
        self._open, self._read_store, self._name = open_store, read_store, name
        self._held_store: S | None = None
        self._turn = threading.Lock()
        #: What is stored, for those who look.
        self.cached: Cached[V] = Cached(self.read, seconds)

    @contextmanager
    def store(self) -> Iterator[S]:
        """The store, for this thread alone.  TrimtabError where it cannot be had soon."""
        if not self._turn.acquire(timeout=TURN_SECONDS):
            raise TrimtabError(f"others wait for the {self._name}, which do not answer")
        try:
            if self._held_store is None:
                self._held_store = self._open()
            yield self._held_store
        finally:
            self._turn.release()

    def read(self) -> V:
        """What is stored now.  TrimtabError."""
        with self.store() as store:
            return self._read_store(store)

    def close(self) -> None:
        """Close the store; one that does not answer ends with the process."""
        if self._turn.acquire(timeout=TURN_SECONDS):
            try:
                if self._held_store is not None:
                    self._held_store.close()
            finally:
                self._turn.release()


@contextmanager
def as_refusals() -> Iterator[None]:
    """Within the block what a store, or who changes what is in it, raises is RefusedError: 404, 409, or 503."""
    try:
        yield
    except NothingFoundError as error:
        raise RefusedError(404, "No such proposal", str(error)) from error
    except (ProposalRefusedError, PlanRefusedError, WireError) as error:
        raise RefusedError(409, "Not possible now", str(error)) from error
    except TrimtabError as error:
        refused = RefusedError(503, "Not possible now", str(error))
        refused.headers["Retry-After"] = "10"
        raise refused from error
