"""A cache that is bounded by what it holds: entries may be a word or a list of thousands."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class WeighedCache(Generic[K, V]):
    """Results of *make*, of about *most* bytes in all, as *weigh* tells them; those used lately are kept.

    Two dicts: what is used moves to the newer one; when that holds half of *most*, the older one is dropped.  Several
    threads may use it: at worst one makes what another has.
    """

    def __init__(self, make: Callable[[K], V], *, weigh: Callable[[K, V], int], most: int) -> None:
        self._make, self._weigh, self._half = make, weigh, most // 2
        self._newer = dict[K, V]()
        self._older = dict[K, V]()
        #: Bytes of the newer ones.
        self._size = 0

    def __call__(self, key: K) -> V:
        """The result for *key*."""
        found = self._newer.get(key)
        if found is None:
            found = self._older.get(key)
            if found is None:
                found = self._make(key)
            self._keep(key, found)
        return found

    def __len__(self) -> int:
        return len(self._newer.keys() | self._older.keys())

    def _keep(self, key: K, made: V) -> None:
        size = self._weigh(key, made)
        if self._size + size > self._half:
            self._older, self._newer, self._size = self._newer, {}, 0
        self._newer[key] = made
        self._size += size
