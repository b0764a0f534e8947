"""Names of topics by their places on the hash ring: asked of the brokers while somebody looks, and stored nowhere."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from controller.model.errors import TrimtabError
from controller.model.names import topic_hash
from controller.model.summary import NO_PLACE
from controller.web.cached import Cached
from controller.wire.base import printable

#: Lists the topics of a bundle, or the scalable topics of a namespace; TrimtabError where that is not possible.
TopicLister: TypeAlias = Callable[[str], Iterable[str]]
#: Place on the ring -> the topics there, sorted.
NamesByPlace: TypeAlias = Mapping[int, tuple[str, ...]]

#: Names are asked for anew after this time.
_SECONDS: Final = 60.0
#: So many answers are remembered.
_BUNDLES: Final = 64
#: So many bundles are asked about at once; another one waits for its turn, and then goes without names.
_AT_ONCE: Final = 8
_TURN_SECONDS: Final = 1.0
#: So many topics at one place are named.
_NAMES: Final = 3
_NONE: Final[NamesByPlace] = {}


class TopicNames:
    """What *list_topics* says of the topics at some places; None: nobody can be asked.  For several threads."""

    def __init__(self, list_topics: TopicLister | None) -> None:
        self._list_topics = list_topics
        self._lock, self._turns = threading.Lock(), threading.BoundedSemaphore(_AT_ONCE)
        self._answers: OrderedDict[tuple[str, tuple[int, ...]], Cached[NamesByPlace]] = OrderedDict()

    def at(
        self,
        bundle: str,
        places: Sequence[int],
        wait_seconds: float,
        wait: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> NamesByPlace:
        """The names of the topics of *bundle* at *places*, after waiting up to *wait_seconds* by *wait*.

        *bundle* may be a namespace: then the names are of its scalable topics.

        A place is left out where no topic there is known: it was deleted, the brokers do not answer, or they refuse.
        """
        list_topics = self._list_topics
        if not places or list_topics is None:
            return _NONE
        key = bundle, tuple(sorted(places))
        with self._lock:
            answer = self._answers.get(key)
            if answer is None:
                answer = self._answers[key] = Cached(partial(self._names, list_topics, *key), _SECONDS)
            self._answers.move_to_end(key)
            if len(self._answers) > _BUNDLES:
                self._answers.popitem(last=False)
        return answer.reading(wait_seconds, wait).value or _NONE

    def _names(self, list_topics: TopicLister, bundle: str, places: Sequence[int]) -> NamesByPlace:
        if not self._turns.acquire(timeout=_TURN_SECONDS):
            raise TrimtabError(f"{_AT_ONCE} other bundles are asked about, and no broker answers")
        try:
            return _by_place(list_topics(bundle), places)
        finally:
            self._turns.release()


def _by_place(topics: Iterable[str], places: Sequence[int]) -> NamesByPlace:
    names_at: dict[int, set[str]] = {place: set() for place in places}
    for topic in topics:
        among = names_at.get(_place(topic))
        if among is not None:
            among.add(printable(topic))
    return {place: tuple(sorted(names)[:_NAMES]) for place, names in names_at.items() if names}


def _place(topic: str) -> int:
    try:
        return topic_hash(topic)
    except UnicodeEncodeError:  # half of a surrogate pair: no broker has such a topic
        return NO_PLACE
