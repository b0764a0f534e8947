"""Formats the first few names of a list, and how many more there are."""

from collections.abc import Callable, Collection
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")


def some_of(things: Collection[_T], limit: int, between: str = ", ", format_item: Callable[[_T], str] = str) -> str:
    """The first *limit* of *things*, each as *format_item* says it, and how many more there are: ``a, b and 3 more``.

    Names come from records, brokers and files, and there may be any number of them: neither a sentence nor the time
    that it takes grows with that.
    """
    more = len(things) - limit
    return between.join(map(format_item, islice(things, limit))) + (f" and {more} more" if more > 0 else "")
