"""What a scenario expects of the cluster, as a line of text: a small grammar, parsed strictly.

    FIGURE [of NAMESPACE] <= | >= NUMBER [after INTERVAL]
    steady [within PERCENT] [after INTERVAL]
    no bundle moved twice in INTERVALS [after INTERVAL]

docs/simulate.md defines every figure.
"""

import re
from dataclasses import dataclass
from typing import Final

#: Figures of a whole run: what a line names -> what it means, for docs and errors.
FIGURES: Final = {
    "balance max/mean": "the highest usage of a broker over the mean usage, in the worst interval",
    "balance difference": "the highest usage less the lowest, in percentage points, in the worst interval",
    "balance sd": "the standard deviation of the brokers' usage, in percentage points, in the worst interval",
    "highest usage": "the usage of the busiest broker, in percent, in the worst interval",
    "lowest usage": "the usage of the idlest broker, in percent, in the worst interval",
    "topic max/mean": "bytes/s of the broker with most of a scalable topic over the mean of all brokers, of the worst"
    " topic, in the worst interval",
    "time over limit": "the share of brokers and intervals above the limit, in percent",
    "moves": "unloads that were carried out, also those whose bundle came back to its own broker",
    "splits": "bundles that were split",
    "failed commands": "commands that failed, or whose result is not known",
    "moves undone": "moves whose bundle came back to the broker that it had left",
    "moves redundant": "moves without which every bundle would have ended on the same broker",
    "bundles moved twice": "moves of a bundle within the grace period of its move before",
    "thrash": "how much the load that moves bring and take goes back and forth; 0: it never turns",
    "connections disturbed": "producers and consumers of the bundles that were moved",
    "messages disturbed": "messages that had to wait while a bundle was moved",
    "intervals to balance": "intervals until the cluster is balanced after an event, the mean over the events",
}
#: Figures that can be asked of one namespace.
OF_NAMESPACE: Final = frozenset({"moves", "splits", "moves undone", "bundles moved twice"})
#: CockroachDB's measure of a steady store: within 5 % of its mean.
_STEADY_PERCENT: Final = 5.0
_NUMBER: Final = r"\d{1,12}(?:\.\d{1,6})?"
_AFTER: Final = r"(?: after (?P<after>\d{1,6}))?"
_COMPARED: Final = re.compile(
    rf"(?P<figure>[a-z/ ]+?)(?: of (?P<namespace>\S+))? (?P<sign><=|>=) (?P<number>{_NUMBER}){_AFTER}"
)
_STEADY: Final = re.compile(rf"steady(?: within (?P<number>{_NUMBER}))?{_AFTER}")
_TWICE: Final = re.compile(rf"no bundle moved twice in (?P<number>\d{{1,6}}){_AFTER}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One line."""

    text: str
    #: A key of FIGURES, "steady" or "moved twice in".
    figure: str
    #: Whether the figure may be at most, or must be at least, ``number``.
    at_most: bool
    number: float
    #: The first interval that counts, from 0.
    after: int
    #: Moves and splits of this namespace alone; "": of all.
    namespace: str = ""
    #: For "moved twice in": the number of intervals.
    span: int = 0

    def holds(self, value: float) -> bool:
        """Whether the figure's *value* is as expected; NaN never is."""
        return value <= self.number if self.at_most else value >= self.number


def parse_expectation(text: str) -> Expectation:
    """The expectation in *text*; raises ValueError with what is allowed."""
    words = " ".join(text.split())
    if (match := _STEADY.fullmatch(words)) is not None:
        number = float(match["number"] or _STEADY_PERCENT)
        return Expectation(text=words, figure="steady", at_most=True, number=number, after=int(match["after"] or 0))
    if (match := _TWICE.fullmatch(words)) is not None:
        span, after = int(match["number"]), int(match["after"] or 0)
        return Expectation(text=words, figure="moved twice in", at_most=True, number=0, after=after, span=span)
    match = _COMPARED.fullmatch(words)
    if match is None:
        raise ValueError(
            'expected "FIGURE <= NUMBER [after INTERVAL]", "FIGURE >= NUMBER [after INTERVAL]",'
            ' "steady [within PERCENT] [after INTERVAL]" or "no bundle moved twice in INTERVALS [after INTERVAL]"'
        )
    figure, namespace = match["figure"], match["namespace"] or ""
    if figure not in FIGURES:
        raise ValueError(f"no such figure: {figure!r}; allowed: {', '.join(FIGURES)}")
    if namespace and figure not in OF_NAMESPACE:
        raise ValueError(f"{figure!r} is not known of one namespace; allowed: {', '.join(sorted(OF_NAMESPACE))}")
    return Expectation(
        text=words,
        figure=figure,
        at_most=match["sign"] == "<=",
        number=float(match["number"]),
        after=int(match["after"] or 0),
        namespace=namespace,
    )
