"""The section [notifications]: whom `trimtab serve` tells what happened."""

import re
from collections.abc import Sequence
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Annotated, Final, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from controller.settings.section import PathText, Section, Url
from controller.wire.notifications import CHOSEN_KINDS, MOST_WEBHOOKS

_NAME: Final = r"^[a-z0-9][a-z0-9-]{0,62}$"
_LONGEST_URL: Final = 2_048
_LARGEST_PORT: Final = 65_535
#: Names that always mean this machine.
_LOOPBACK_NAMES: Final = ("localhost", "ip6-localhost")
#: Addresses by which a gateway reaches the IPv4 address in their last 32 bits (RFC 6052).
_NAT64: Final = IPv6Network("64:ff9b::/96")
#: All public addresses of IPv6 lie in it (IANA's registry of its address space).
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_NOT_IN_URLS: Final = re.compile(r"[\s\x00-\x20\x7f\\]")


class WebhookFormat(StrEnum):
    """What a webhook gets."""

    #: CloudEvents 1.0, in structured JSON.
    CLOUDEVENTS = "cloudevents"
    #: A message for an incoming webhook of Slack, or what understands the same.
    SLACK = "slack"
    #: An Adaptive Card for a workflow of Microsoft Teams.
    TEAMS = "teams"


def _kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    for kind in kinds:
        if kind not in CHOSEN_KINDS:
            raise ValueError(f"{kind!r} is no event: allowed are {', '.join(CHOSEN_KINDS)}")
    return tuple(dict.fromkeys(kinds))


_Kinds: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1, strict=False), AfterValidator(_kinds)]


class WebhookSettings(Section):
    """A receiver of notifications."""

    name: Annotated[str, Field(pattern=_NAME)]
    """Its name in logs and metrics: small letters, digits and hyphens."""
    url: Url = ""
    """https://host[:port]/path of the receiver; http only on this machine, or with plain_http."""
    url_file: PathText | None = None
    """A file with the URL, in place of url.  Needed for Slack and Teams, whose URLs let anyone write to the channel."""
    format: Annotated[WebhookFormat, Field(strict=False)] = WebhookFormat.CLOUDEVENTS
    """"cloudevents", "slack" or "teams"."""
    events: _Kinds = tuple(map(str, CHOSEN_KINDS))
    """Which events it gets.  Without it, all."""
    secret_file: PathText | None = None
    """A file with the key that signs requests by Standard Webhooks, whsec_ and base64 of 24 to 64 bytes; while a key is
    replaced, two lines.  Read anew for each request."""
    plain_http: bool = False
    """Allow http to another machine: anyone on the way can then read the notifications, and change them."""
    private_network: bool = False
    """Allow a host name that leads to a private address, such as 10.1.2.3 or 127.0.0.1.  Without it a public name that
    is made to lead there is refused.  Link-local addresses, as of a cloud's metadata, are always refused."""
    trust_certs: PathText | None = None
    """Certificates of the authorities to trust, PEM.  Default: those of the system."""

    @model_validator(mode="after")
    def _has_one_address(self) -> Self:
        if bool(self.url) == bool(self.url_file):
            raise ValueError(f"webhook {self.name!r} needs one of url and url_file")
        if self.url and self.format is not WebhookFormat.CLOUDEVENTS:
            raise ValueError(
                f"webhook {self.name!r}: the URL of a webhook of {self.format} lets anyone write to the channel: put it"
                " into a file of its own, and name that as url_file"
            )
        if self.url:
            self.refuse_bad_address(self.url)
        return self

    def refuse_bad_address(self, url: str) -> None:
        """ValueError, without *url*, where no notification is sent there."""
        problem = _why_no_address(url, plain_http=self.plain_http)
        if problem:
            raise ValueError(f"webhook {self.name!r}: its URL {problem}")

    def why_refused(self, host: str, address: str) -> str:
        """Why nothing is sent to *address*, to which *host* leads; "" where it may be."""
        peer = _destination(ip_address(address.partition("%")[0]))
        if _is_never_allowed(peer):
            return f"{host} leads to {address}, a link-local or unspecified address"
        if _is_public(peer) or self.private_network or _literal(host) is not None or _is_loopback(host):
            return ""
        return f"{host} leads to the private address {address}: set private_network if it is meant"


class NotificationSettings(Section):
    """Whom `trimtab serve` tells what happened.  Without webhooks, nobody."""

    webhooks: Annotated[tuple[WebhookSettings, ...], Field(max_length=MOST_WEBHOOKS, strict=False)] = ()
    """The receivers, each in a table [[notifications.webhooks]]."""
    silent_intervals: Annotated[int, Field(ge=2, le=10_000)] = 5
    """Tell after so many intervals without a decision."""
    doctor_minutes: Annotated[int, Field(ge=0, le=10_080)] = 60
    """Minutes between two runs of the doctor; 0: none."""
    give_up_hours: Annotated[int, Field(ge=1, le=168)] = 24
    """A notification that a receiver has not accepted within so many hours is dropped."""
    page_url: Url = ""
    """Where people find the page, to be linked in notifications: https://trimtab.example.org/."""

    @model_validator(mode="after")
    def _names_are_different(self) -> Self:
        names = [each.name for each in self.webhooks]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two webhooks are called {twice!r}: give each its own name")
        return self

    @model_validator(mode="after")
    def _page_is_a_link(self) -> Self:
        if self.page_url and (problem := _why_no_address(self.page_url, plain_http=True)):
            raise ValueError(f"page_url {problem}")
        return self


def _why_no_address(url: str, *, plain_http: bool) -> str:
    """What is wrong with *url*, without quoting it: it may be a secret.  "": nothing."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        return "is not an address: expected https://host[:port]/path"
    if _NOT_IN_URLS.search(url) or len(url) > _LONGEST_URL or "@" in parts.netloc or parts.fragment:
        return f"has white space, a user, a fragment or more than {_LONGEST_URL} characters"
    if not host or parts.scheme not in ("https", "http") or (port is not None and not 0 < port <= _LARGEST_PORT):
        return "is not an address: expected https://host[:port]/path"
    if parts.scheme == "http" and not (plain_http or _is_loopback(host)):
        return "begins with http: allowed is https, http on this machine, or plain_http = true"
    address = _literal(host)
    if address is not None and _is_never_allowed(_destination(address)):
        return f"leads to {address}, a link-local or unspecified address, which is never allowed"
    return ""


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address  # mapped: this machine's own, too


def _destination(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that is reached by an IPv6 one: mapped (::ffff:127.0.0.1), by NAT64, or by 6to4 (RFC 3056); else
    *address*."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or address


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and (isinstance(address, IPv4Address) or address in _GLOBAL_UNICAST)


def _is_loopback(host: str) -> bool:
    address = _literal(host)
    return host.lower() in _LOOPBACK_NAMES if address is None else address.is_loopback


def _is_never_allowed(address: IPv4Address | IPv6Address) -> bool:
    return address.is_link_local or address.is_unspecified or address.is_multicast
