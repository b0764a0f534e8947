"""Users that a trusted proxy names in a header.  From any other address such a header is an attempt, and refused."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Final

from starlette.datastructures import Headers

from controller.settings.web import ProxySettings, ViewerRole
from controller.web.access.viewer import LONGEST_NAME, RefusedError, Viewer, forbidden
from controller.wire.base import printable

_FORWARDED_FOR: Final = "x-forwarded-for"


class TrustedProxy:
    """What requests through the proxies of *settings* say about their users."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings, self._networks = settings, settings.networks
        self._names = {name.lower() for name in (settings.user_header, settings.groups_header)}

    def is_peer(self, address: str) -> bool:
        """Whether a connection from *address* comes from one of the proxies."""
        try:
            peer = ip_address(address)
        except ValueError:
            return False
        mapped = getattr(peer, "ipv4_mapped", None)
        return any((mapped or peer) in network for network in self._networks)

    def client_address(self, headers: Headers, peer: str) -> str:
        """Who sent the request, for limits: the last address that a proxy added and that is no proxy itself."""
        hops = [hop.strip() for value in headers.getlist(_FORWARDED_FOR) for hop in value.split(",")]
        return next((hop for hop in reversed(hops) if hop and not self.is_peer(hop)), peer)[:LONGEST_NAME]

    def viewer(self, headers: Headers, peer: str) -> Viewer | None:
        """The user that the proxy names; None where it names nobody.

        RefusedError where another address sends the header, where it comes twice or in a spelling that some servers
        take for it, or where the user has no role.
        """
        spellings = [name for name in headers if name.replace("_", "-") in self._names]
        if not spellings:
            return None
        if not self.is_peer(peer):
            raise forbidden(f"the header {spellings[0]} is taken from the proxies in [web.proxy] alone")
        if any("_" in name for name in spellings) or len(set(spellings)) != len(spellings):
            raise RefusedError(400, "Ambiguous user", "a header that names the user comes twice, or is misspelt")
        name = printable(_text(headers.get(self._settings.user_header, "")).strip())[:LONGEST_NAME]
        if not name:
            return None
        groups = [group.strip() for group in _text(headers.get(self._settings.groups_header, "")).split(",")]
        listed = self._settings.users.get(name)
        role = highest_role(groups, self._settings.roles, [listed, self._settings.everybody])
        if role is None:
            raise forbidden(f"{name} has no role in [web.proxy]")
        return Viewer(name=name, role=role, login="proxy")


def _text(value: str) -> str:
    """*value* of a header, whose bytes HTTP calls ISO 8859-1, and proxies write in UTF-8."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def highest_role(
    groups: Sequence[str], roles: Mapping[str, ViewerRole], others: Sequence[ViewerRole | None] = ()
) -> ViewerRole | None:
    """The highest role of the *groups* that *roles* lists, and of the *others*; None where there is none."""
    allowed = [role for role in [*map(roles.get, groups), *others] if role is not None]
    return max(allowed, key=lambda role: role.rank, default=None)
