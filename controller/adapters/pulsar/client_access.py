"""How the client library shows who we are, and knows whom to trust."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import pulsar

from controller.adapters.network.tls import Tls
from controller.adapters.pulsar.credentials import Credentials

#: More than the library ever loses.
_REFERENCES: Final = 1_000


def client_access(credentials: Callable[[], Credentials], tls: Tls) -> dict[str, Any]:
    """Options of ``pulsar.Client``: who we are, and whom we trust.

    The library asks for the token whenever it connects, and when a broker says that it is about to end.  It reads the
    files of *tls* whenever it connects.  A password is read once.
    """
    own, authentication = credentials(), None
    if own.token:
        authentication = pulsar.AuthenticationToken(_token_of(credentials)[0])
    elif own.user:
        authentication = pulsar.AuthenticationBasic(own.user, own.password)
    elif tls.certificate:
        authentication = pulsar.AuthenticationTLS(tls.certificate, tls.key)
    return {
        "authentication": authentication,
        "tls_trust_certs_file_path": tls.trust_certs or None,
        "tls_validate_hostname": tls.verify_host,
        # Also beside a token or a password: brokers may ask every client for a certificate.
        "tls_certificate_file_path": tls.certificate or None,
        "tls_private_key_file_path": tls.key or tls.certificate or None,
    }


@cache
def _token_of(credentials: Callable[[], Credentials]) -> tuple[Callable[[], str], ...]:
    """What says the token, many times the same.

    The library counts its references to it in threads of its own, without Python's lock.  So it may miscount, and must
    never let go of the last one: these are kept for ever, for each section of the settings once.
    """
    return (lambda: credentials().token,) * _REFERENCES
