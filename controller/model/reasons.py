"""The meaning of each reason: its class, and what would change it."""

from enum import StrEnum
from typing import Final, NamedTuple


class ReasonClass(StrEnum):
    """Who, or what, can change a decision with this reason.  PD: the categories of plan.Status."""

    #: Something was done, or there is nothing to do.
    NORMAL = "normal"
    #: It passes by itself with time.
    THROTTLED = "throttled"
    #: A setting, a policy or a person forbids it; a person can allow it.
    CONFIGURATION = "configuration"
    #: It cannot be done with the brokers, bundles and data that there are.
    IMPOSSIBLE = "impossible"


class Meaning(NamedTuple):
    """The class of a reason, and what it says."""

    kind: ReasonClass
    #: What is so, and what changes it.
    text: str


NORMAL: Final = ReasonClass.NORMAL
THROTTLED: Final = ReasonClass.THROTTLED
CONFIGURATION: Final = ReasonClass.CONFIGURATION
IMPOSSIBLE: Final = ReasonClass.IMPOSSIBLE
