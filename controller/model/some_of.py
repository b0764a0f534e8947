"""Names in a sentence: some of them, and how many more there are."""

from collections.abc import Callable, Collection
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")


def some_of(things: Collection[_T], most: int, between: str = ", ", shown: Callable[[_T], str] = str) -> str:
    """The first *most* of *things*, each as *shown* says it, and how many more there are: ``a, b and 3 more``.

    Names come from records, brokers and files, and there may be any number of them: neither a sentence nor the time
    that it takes grows with that.
    """
    more = len(things) - most
    return between.join(map(shown, islice(things, most))) + (f" and {more} more" if more > 0 else "")
