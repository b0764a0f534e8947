"""A law: a sentence, examples to check it on, and a function that says whether a strategy breaks it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis.strategies import SearchStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A law of one kind of strategy."""

    #: What holds, as a sentence.
    sentence: str
    examples: SearchStrategy[Any]
    #: (strategy, example): what is wrong, in words; None where the law holds.
    flaw: Callable[[Any, Any], str | None]
    #: An example, in lines of words.
    describe: Callable[[Any], list[str]]
