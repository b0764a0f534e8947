"""What signed commands cost: a controller that signs those of one interval, an executor that checks them."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from controller.wire.command_signatures import signatures_of, why_not_believed
from controller.wire.commands import EpochEvent, command_event, parse_event
from controller.wire.ed25519 import SigningKey
from tests.commands import T, unload

_REPEATS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureCosts:
    """Medians of CPU time, in ms, for all commands of an interval."""

    commands: int
    encode_ms: float
    sign_ms: float
    parse_ms: float
    check_ms: float
    bytes_unsigned: int
    bytes_signed: int


def signature_costs(number: int) -> SignatureCosts:
    """The costs for *number* commands of one interval."""
    key, other = SigningKey.new(), SigningKey.new()
    commands = [
        replace(unload(), id=f"{T}-{each}", bundle=f"tenant/ns{each}/0x00000000_0x80000000") for each in range(number)
    ]
    signatures = signatures_of(commands, 7, key)
    plain = [command_event(each, 7, T) for each in commands]
    signed = [command_event(each, 7, T, signature) for each, signature in zip(commands, signatures, strict=True)]
    events = [event for event in map(parse_event, signed) if not isinstance(event, EpochEvent)]
    keys = [other.public, key.public]  # the key that signed comes last, as during a change of keys
    assert not any(why_not_believed(event, keys) for event in events)
    return SignatureCosts(
        commands=number,
        encode_ms=_median_ms(lambda: [command_event(each, 7, T) for each in commands]),
        sign_ms=_median_ms(lambda: signatures_of(commands, 7, key)),
        parse_ms=_median_ms(lambda: list(map(parse_event, signed))),
        check_ms=_median_ms(lambda: [why_not_believed(event, keys) for event in events]),
        bytes_unsigned=sum(map(len, plain)),
        bytes_signed=sum(map(len, signed)),
    )


def _median_ms(work: Callable[[], object]) -> float:
    times = list[float]()
    for _ in range(_REPEATS):
        started = time.process_time()
        work()
        times.append((time.process_time() - started) * 1000)
    return round(statistics.median(times), 2)
