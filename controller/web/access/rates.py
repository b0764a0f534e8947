"""How many requests a client may send: a bucket of tokens for each, that fills at a steady pace."""

import time
from collections import OrderedDict
from ipaddress import IPv6Address, ip_address
from typing import Final

from controller.adapters.network.deadline import Clock

#: Clients that are remembered; the one that was quiet for longest is forgotten first, and starts with a full bucket.
_MOST_CLIENTS: Final = 10_000
#: Seconds' worth of requests that may come at once.
_BURST_SECONDS: Final = 5.0
#: Of an IPv6 address: a customer has at least such a network, and could use any address in it.
_IPV6_NETWORK_BITS: Final = 64


class Rates:
    """Buckets of *per_second* requests.  For one thread."""

    def __init__(self, per_second: float, *, clock: Clock = time.monotonic) -> None:
        self._per_second, self._clock = per_second, clock
        self._burst = max(1.0, per_second * _BURST_SECONDS)
        #: Client -> what is left, and as of when.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_seconds(self, client: str) -> float:
        """Take one request of *client*: 0.0 where it may come now, else after how many seconds it may."""
        now = self._clock()
        amount, since = self._buckets.pop(client, (self._burst, now))
        amount = min(self._burst, amount + (now - since) * self._per_second)
        is_allowed = amount >= 1.0
        self._buckets[client] = (amount - 1.0 if is_allowed else amount, now)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if is_allowed else (1.0 - amount) / self._per_second


def client_key(address: str) -> str:
    """What limits count *address* as."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return f"{int(parsed) >> (128 - _IPV6_NETWORK_BITS):x}::"
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)
