"""How much each member gives up so that all have a fair share, and how long that waits when it happens again and again.

Kafka Connect: performTaskRevocation, performLoadBalancingRevocations, ExponentialBackoff
"""

import math
from collections.abc import Sequence
from typing import Final

#: Each further wait is so many times as long as the one before.
_MULTIPLIER: Final = 40


def one_share_in_all(counts: Sequence[int], total: int) -> list[int]:
    """2.6.0: what is above the average, rounded down, from the first members on, one member's share in all."""
    floor = total // len(counts)
    revoked, budget = [], floor
    for count in counts:
        revoked.append(max(0, min(count - floor, budget)))
        budget -= revoked[-1]
    return revoked


def above_the_average(counts: Sequence[int], total: int) -> list[int]:
    """2.6.3: from each, what is above the average, rounded up."""
    ceiling = -(-total // len(counts))
    return [max(0, count - ceiling) for count in counts]


def above_the_share_by_name(counts: Sequence[int], total: int) -> list[int]:
    """3.9: from each, what is above its share; the first members that hold more than the average keep one more."""
    return _above_the_share(counts, total, range(len(counts)))


def above_the_share_by_load(counts: Sequence[int], total: int) -> list[int]:
    """Ours: from each, what is above its share; the fullest members keep one more."""
    return _above_the_share(counts, total, sorted(range(len(counts)), key=lambda i: -counts[i]))


def _above_the_share(counts: Sequence[int], total: int, order: Sequence[int]) -> list[int]:
    floor, over = divmod(total, len(counts))
    share = [floor] * len(counts)
    for i in [i for i in order if counts[i] > floor][:over]:
        share[i] += 1
    return [max(0, count - share_of_member) for count, share_of_member in zip(counts, share, strict=True)]


def back_off_ms(attempts: int, longest_ms: int) -> int:
    """How long revocation number *attempts* of a row waits: 40 ms, 1.6 s, 64 s and so on, *longest_ms* at most."""
    if longest_ms <= 1:
        return longest_ms
    exponent = min(attempts, math.log(longest_ms) / math.log(_MULTIPLIER))
    return min(int(_MULTIPLIER**exponent), longest_ms)
