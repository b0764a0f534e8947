"""What both sides are asked."""

from typing import NamedTuple


class PlanRequest(NamedTuple):
    """A line for the Java driver, and trimtab's answer in the driver's words: Java's has to be one of these."""

    line: str
    answers: tuple[str, ...]
