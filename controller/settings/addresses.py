"""Addresses of servers in the settings: refused where a client would only find out later, or never."""

import re
from typing import Annotated, Final, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from controller.settings.section import Url

_HOST: Final = r"(?:\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\],@]+)"
_HOST_AND_PORT: Final = re.compile(rf"(?:[A-Za-z_]+://)?(?P<host>{_HOST}):(?P<port>[0-9]+)")
_ZOOKEEPER: Final = re.compile(rf"(?P<host>{_HOST})(?::(?P<port>[0-9]+))?")
_LISTEN: Final = re.compile(rf"(?P<host>{_HOST}):(?P<port>[0-9]{{1,9}})")
_WITHOUT_PORT: Final = re.compile(rf"(?:[A-Za-z_]+://)?{_HOST}")
_LARGEST_PORT: Final = 65_535


def _kafka(text: str) -> str:
    for each in _parts(text):
        match = _HOST_AND_PORT.fullmatch(each)
        if match is None:
            what = "has no port" if _WITHOUT_PORT.fullmatch(each) else "is not an address"
            raise ValueError(f"{each!r} {what}: allowed is host:port[,host:port ...]; Kafka's usual port is 9092")
        _check_host(each, match["host"])
        _check_port(each, match["port"])
    return text


def _zookeeper(text: str) -> str:
    servers, slash, chroot = text.partition("/")
    for each in _parts(servers):
        match = _ZOOKEEPER.fullmatch(each)
        if match is None:
            raise ValueError(f"{each!r} is not an address: expected host:port[,host:port ...][/chroot]")
        _check_host(each, match["host"])
        _check_port(each, match["port"])
    if slash and not chroot:
        raise ValueError("it ends in /: expected host:port[,host:port ...][/chroot]")
    return text


def _admin(urls: tuple[str, ...]) -> tuple[str, ...]:
    for url in urls:
        _with_scheme(url, ("http", "https"), "http://host:port or https://host:port of a broker")
    return urls


def _service(url: str) -> str:
    return _with_scheme(url, ("pulsar", "pulsar+ssl"), "pulsar://host:port or pulsar+ssl://host:port") if url else url


def _receiver(url: str) -> str:
    return _with_scheme(url, ("http", "https"), "http://host:port or https://host:port") if url else url


def _pulsar(url: str) -> str:
    scheme, _, servers = url.partition("://")
    for each in servers.split(","):
        _with_scheme(
            f"{scheme}://{each}", ("pulsar", "pulsar+ssl"), "pulsar://host:port[,host:port ...] or pulsar+ssl://..."
        )
    return url


def host_and_port(address: str) -> tuple[str, int]:
    """The host, of an IPv6 address without brackets, and the port of *address*; ValueError where it is none."""
    match = _LISTEN.fullmatch(address)
    if match is None:
        raise ValueError(f"{address!r} is not an address: expected host:port, for example 127.0.0.1:9640")
    _check_host(address, match["host"])
    _check_port(address, match["port"])
    return match["host"].strip("[]"), int(match["port"])


def _listen(address: str) -> str:
    if address:
        host_and_port(address)
    return address


def _with_scheme(url: str, schemes: tuple[str, ...], allowed: str) -> str:
    scheme, _, rest = url.partition("://")
    if not rest or "://" not in url:
        raise ValueError(f"{url!r} does not begin with {schemes[0]}:// or {schemes[1]}://: allowed is {allowed}")
    try:
        parts = urlsplit(url)
        place = scheme in schemes and parts.hostname and (parts.port is None or 0 < parts.port <= _LARGEST_PORT)
    except ValueError:
        place = None
    if not place or parts.path not in ("", "/") or parts.query or parts.fragment or re.search(r"\s", url):
        raise ValueError(f"{url!r} is not allowed: allowed is {allowed}")
    _check_host(url, str(parts.hostname))
    return url


def _parts(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


def _check_host(where: str, host: str) -> None:
    """No resolver takes such a name, and Python's raises an error of its own."""
    try:
        host.strip("[]").encode("idna")
    except UnicodeError as error:
        raise ValueError(f"{where!r} has a part between two dots that is empty or longer than 63 characters") from error


def _check_port(where: str, port: str | None) -> None:
    if port is not None and not 0 < int(port) <= _LARGEST_PORT:
        raise ValueError(f"{where!r} has port {port}: allowed is a number from 1 to {_LARGEST_PORT}")


#: host:port[,host:port ...] of Kafka's brokers.
KafkaServers: TypeAlias = Annotated[Url, AfterValidator(_kafka)]
#: host:port[,host:port ...][/chroot] of ZooKeeper's servers; "" is allowed where they are optional.
ZooKeeperServers: TypeAlias = Annotated[str, AfterValidator(lambda text: _zookeeper(text) if text else text)]
#: host:port where a process is to listen; "": nowhere.
ListenAddress: TypeAlias = Annotated[str, AfterValidator(_listen)]
#: URLs of Pulsar's admin API, without a path; one at least.
AdminUrls: TypeAlias = Annotated[tuple[Url, ...], Field(min_length=1, strict=False), AfterValidator(_admin)]
#: A service URL of Pulsar; "" is allowed.
ServiceUrl: TypeAlias = Annotated[Url, AfterValidator(_service)]
#: pulsar://host:port[,host:port ...] or pulsar+ssl://... of Pulsar's brokers.
PulsarServers: TypeAlias = Annotated[Url, AfterValidator(_pulsar)]
#: http://host:port or https://host:port that takes traces; "": nowhere.
TraceReceiver: TypeAlias = Annotated[Url, AfterValidator(_receiver)]
