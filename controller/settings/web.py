"""The section [web]: where `trimtab serve` listens, and who may look."""

from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Annotated, Final, Self, TypeAlias

from pydantic import AfterValidator, Field, ValidationError, model_validator

from controller.model.errors import SettingsError
from controller.settings.access import issuer_address
from controller.settings.addresses import ListenAddress, host_and_port
from controller.settings.problems import problems
from controller.settings.section import PathText, Section, Text, Url

#: An HTTP field name, as a proxy sends it.
_FIELD: Final = r"^[A-Za-z][A-Za-z0-9-]{0,62}$"
#: Names and groups that a role is given to.
_MOST_NAMES: Final = 10_000
#: Names that always mean this machine.
_LOOPBACK_NAMES: Final = ("localhost", "ip6-localhost")


class ViewerRole(StrEnum):
    """What a person or a program may do; each role may do what the earlier ones may."""

    #: Look at everything.
    VIEWER = "viewer"
    #: Also start work on the server: what-if, incidents, plans; and change the controls, where `writes` is set.
    OPERATOR = "operator"
    #: Also approve what others propose.
    APPROVER = "approver"

    @property
    def rank(self) -> int:
        """The higher, the more it may do."""
        return list(ViewerRole).index(self)

    def may(self, needed: "ViewerRole") -> bool:
        """Whether this role may do what *needed* may."""
        return self.rank >= needed.rank


def _networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        try:
            network = ip_network(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is not an address: expected 10.0.0.7 or 10.0.0.0/24") from error
        if network.prefixlen == 0:
            raise ValueError(
                f"{text} is every address, so anyone could claim any identity: list only the addresses of the proxies"
            )
    return texts


_RoleSetting: TypeAlias = Annotated[ViewerRole, Field(strict=False)]
RolesByName: TypeAlias = Annotated[
    dict[Annotated[str, Field(min_length=1)], _RoleSetting], Field(max_length=_MOST_NAMES)
]
_Texts: TypeAlias = Annotated[tuple[Text, ...], Field(strict=False)]


class OidcSettings(Section):
    """People and programs with a token of an identity provider (OpenID Connect)."""

    issuer: Annotated[Url, AfterValidator(issuer_address)]
    """The provider, https://host/path: tokens must name it as "iss"."""
    audience: Text
    """The audience of the tokens, "aud": the client id at the provider, or the name of an API."""
    jwks_file: PathText | None = None
    """A file with the provider's public keys (JWKS); read anew when it changes.  Without it and jwks_url, they are
    fetched from where the provider's discovery document says."""
    jwks_url: Annotated[Url, AfterValidator(issuer_address)] | None = None
    """Where the provider's public keys are."""
    name_claim: Text = "sub"
    """The claim that names the user: "sub", "email", "preferred_username"."""
    roles_claim: Text = "groups"
    """The claim with the user's groups or roles, a text or a list."""
    roles: RolesByName = Field(default_factory=dict)
    """Group -> role.  The highest one counts."""
    everybody: _RoleSetting | None = None
    """The role of a user in none of these groups; without it, such users have no access."""
    client_id: str = ""
    """With it the login page offers to log in at the provider (code flow with PKCE)."""
    client_secret_file: PathText | None = None
    """A file with the client's secret, where the provider wants one."""
    scope: Text = "openid profile"
    """The scopes that the login requests."""
    trust_certs: PathText | None = None
    """Certificates of the authorities to trust for the provider, PEM.  Default: those of the system."""

    @model_validator(mode="after")
    def _has_one_source_of_keys(self) -> Self:
        if self.jwks_file and self.jwks_url:
            raise ValueError("jwks_file and jwks_url are both given: choose one of them")
        return self


class ProxySettings(Section):
    """A proxy that has checked who the user is, and says so in a header."""

    addresses: Annotated[_Texts, Field(min_length=1), AfterValidator(_networks)]
    """Addresses or networks of the proxies.  A request from anywhere else that has user_header is refused."""
    user_header: Annotated[str, Field(pattern=_FIELD)] = "X-Forwarded-User"
    """The header with the user's name.  The proxy must remove it from what clients send."""
    groups_header: Annotated[str, Field(pattern=_FIELD)] = "X-Forwarded-Groups"
    """The header with the user's groups, separated by commas."""
    roles: RolesByName = Field(default_factory=dict)
    """Group -> role.  The highest one counts."""
    users: RolesByName = Field(default_factory=dict)
    """User -> role."""
    everybody: _RoleSetting | None = None
    """The role of a user who is not listed; without it, such users have no access."""

    @property
    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The addresses, parsed."""
        return tuple(map(ip_network, self.addresses))


class WebTlsSettings(Section):
    """TLS of the page itself, and client certificates."""

    certificate: PathText
    """The server's certificate and the ones between it and its authority, PEM."""
    key: PathText
    """Its private key, PEM."""
    client_authorities: PathText | None = None
    """Certificates of the authorities whose client certificates say who somebody is, PEM.  Browsers without one can
    still log in otherwise."""
    users: RolesByName = Field(default_factory=dict)
    """Common name of a client certificate -> role."""

    @model_validator(mode="after")
    def _users_have_an_authority(self) -> Self:
        if self.users and self.client_authorities is None:
            raise ValueError("users are given without client_authorities: name the authorities that vouch for them")
        return self


class WebSettings(Section):
    """The page and its REST: `trimtab serve`.  With several settings files, the first one's section applies."""

    listen: ListenAddress = "127.0.0.1:9680"
    """host:port.  Elsewhere than on loopback it needs [web.tls] or [web.proxy]."""
    hosts: _Texts = ()
    """Names under which browsers reach the page, such as trimtab.example.org.  Requests with another name in Host are
    refused, so that no foreign site can read the page through a browser; addresses and localhost are always allowed."""
    anonymous: _RoleSetting | None = None
    """The role of anonymous users; without it, they have no access."""
    tokens_file: PathText | None = None
    """A TOML file with hashed tokens, as `trimtab token` prints them; read anew when it changes."""
    writes: bool = False
    """Whether operators and approvers may change the controls here: pause, resume, mode, drain and the like.  The
    server then needs the rights of `trimtab pause`: docs/security.md.  Anonymous users never may."""
    signing_key_file: PathText | None = None
    """The private key by which this server vouches for who proposes and approves here: Ed25519, PEM in PKCS#8.  The
    controllers believe it where [approvals.servers] has its public key; `trimtab proposals key` makes one."""
    session_key_file: PathText | None = None
    """A file with 32 random bytes or more that sign sessions.  Needed where several `trimtab serve` share an address;
    without it each start ends the sessions."""
    session_hours: Annotated[float, Field(gt=0, le=24 * 30)] = 12.0
    """How long a login lasts."""
    store_path: PathText | None = None
    """Folder of what the page remembers of the log; a new process there goes on where the last one ended.  Without it,
    a temporary folder."""
    requests_per_second: Annotated[float, Field(gt=0, le=10_000)] = 20.0
    """Requests of one client, in the long run; five seconds' worth at once."""
    streams_per_client: Annotated[int, Field(ge=1, le=1000)] = 16
    """Pages of one user that are updated live at the same time; of anonymous users, pages of one address."""
    streams: Annotated[int, Field(ge=1, le=100_000)] = 512
    """The same of all users together; more are refused."""
    connections: Annotated[int, Field(ge=16, le=100_000)] = 1024
    """Open connections of all clients; more are refused."""
    jobs: Annotated[int, Field(ge=1, le=64)] = 2
    """What-ifs, audits and incidents that run at the same time, each in its own process."""
    job_seconds: Annotated[int, Field(ge=1, le=86_400)] = 600
    """A job that takes longer is cancelled."""
    longest_span_hours: Annotated[int, Field(ge=1, le=24 * 31)] = 24
    """The longest time that a what-if, an audit or an incident may be about."""
    tls: WebTlsSettings | None = None
    oidc: OidcSettings | None = None
    proxy: ProxySettings | None = None

    def at(self, listen: str) -> "WebSettings":
        """These settings with another address to *listen* at.  SettingsError: it needs what they do not have."""
        try:
            return WebSettings.model_validate(self.model_dump() | {"listen": listen})
        except ValidationError as error:
            raise SettingsError("\n".join(problems(error, WebSettings))) from None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the page."""
        host = host_and_port(self.listen)[0]
        if host.lower() in _LOOPBACK_NAMES:
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def somebody_may_look(self) -> bool:
        """Whether any way to say who one is is set up."""
        by_certificate = self.tls is not None and bool(self.tls.users)
        return bool(self.anonymous or self.tokens_file or self.oidc or self.proxy) or by_certificate

    @model_validator(mode="after")
    def _is_not_open_in_plain_text(self) -> Self:
        if not self.listen:
            raise ValueError("listen is empty: allowed is host:port")
        if not self.is_loopback and self.tls is None and self.proxy is None:
            raise ValueError(
                f"listen = {self.listen!r} can be reached from elsewhere, and tokens would go there in plain text:"
                " add [web.tls], or [web.proxy] with the addresses of the proxies that add TLS, or listen on 127.0.0.1"
            )
        return self
