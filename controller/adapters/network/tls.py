"""TLS to the servers that trimtab calls by itself (librdkafka and Java have their own), and errors for its refusals."""

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.model.errors import TrimtabError
from controller.settings.access import TlsSettings
from controller.settings.small_file import why_not_read_again


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """PEM files: the authorities to trust instead of the system's, and our certificate."""

    trust_certs: str = ""
    certificate: str = ""
    key: str = ""
    #: False accepts certificates of other host names, as Pulsar's own clients do by default.
    verify_host: bool = True

    def state(self) -> tuple[object, ...]:
        """Another value once one of the files has been replaced or written."""
        return tuple(map(_state_of, filter(None, (self.trust_certs, self.certificate, self.key))))

    def context(self, to: str = "Pulsar") -> ssl.SSLContext:
        """For every connection *to* that server.  TrimtabError where a file cannot be used."""
        for key, file in (("trust_certs", self.trust_certs), ("certificate", self.certificate), ("key", self.key)):
            problem = why_not_read_again(Path(file)) if file else ""
            if problem:
                raise TrimtabError(f"TLS to {to}: {key} = {file!r}: {problem}")
        try:
            context = ssl.create_default_context(cafile=self.trust_certs or None)
        except (OSError, ssl.SSLError) as error:
            raise TrimtabError(f"TLS to {to}: trust_certs = {self.trust_certs!r}: {error}") from error
        # Python 3.13 also refuses authorities without a key usage, as `openssl req -x509` makes them.  Earlier ones,
        # librdkafka and Java accept them: what connects today is not to fail with another Python.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        try:
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None)
        except (OSError, ssl.SSLError) as error:
            raise TrimtabError(
                f"TLS to {to}: certificate = {self.certificate!r}, key = {self.key!r}: {error}"
            ) from error
        context.check_hostname = self.verify_host
        return context


def _state_of(file: str) -> object:
    try:
        status = os.stat(file)
    except OSError as error:
        return error.errno
    return status.st_ino, status.st_size, status.st_mtime_ns


def tls_of(settings: TlsSettings) -> Tls:
    """The files that *settings* name."""
    return Tls(
        trust_certs=settings.trust_certs or "",
        certificate=settings.certificate or "",
        key=settings.key or "",
        verify_host=settings.verify_host,
    )


#: OpenSSL's errors for an answer that is not TLS.
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
#: A server's alerts about our certificate, by the end of OpenSSL's name for them.
_ALERTS: Final = {
    "CERTIFICATE_EXPIRED": "it has expired",
    "CERTIFICATE_REVOKED": "it was revoked",
    "UNKNOWN_CA": "the server does not trust the authority that signed it",
    "CERTIFICATE_REQUIRED": "the server requires one, and none is configured",
    "HANDSHAKE_FAILURE": "the server requires another version or other ciphers",
    "CERTIFICATE_UNKNOWN": "it has expired, or the server does not trust its authority",
    "INTERNAL_ERROR": "it has expired, or the server does not trust its authority; the server's log says why",
    "BAD_CERTIFICATE": "it has expired, is missing, or the server does not trust its authority",
}


def refusal(error: OSError, section: str, *, trust: str = "trust_certs", own: str = "certificate") -> str:
    """Why TLS failed, and which setting of [*section*] it is about; *error*'s own words where it is not TLS's.

    *trust* and *own* are the keys there of whom we trust, and of our certificate.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message.rstrip(".")
        return f"the server's certificate is refused: {why}; [{section}] {trust} sets the trusted authorities"
    if isinstance(error, ssl.SSLError):
        reason = error.reason or ""
        for end, why in _ALERTS.items():
            if "ALERT" in reason and reason.endswith(end):
                return f"the server refuses our certificate ([{section}] {own}): {why}"
        if reason in _NO_TLS:
            return f"the server does not speak TLS on this port, but [{section}] requires it"
    return str(error)


def is_refusal(error: ssl.SSLError) -> bool:
    """Whether *error* is about certificates or about TLS as such, not about a connection that broke off."""
    reason = error.reason or ""
    return isinstance(error, ssl.SSLCertVerificationError) or "ALERT" in reason or reason in _NO_TLS
