"""When the credentials that the settings name expire: tokens, our certificates, and the authorities that we trust."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from pydantic import BaseModel

from controller.adapters.pulsar.tokens import end_of
from controller.model.errors import TrimtabError
from controller.settings.access import PulsarLogin, TlsSettings
from controller.settings.log import KafkaLogSettings
from controller.settings.small_file import read_small_file, why_not_read_again
from controller.settings.trimtab_toml import Settings

#: Options of librdkafka that name files of certificates.
_KAFKA_FILES: Final = {"ssl.certificate.location": "certificate", "ssl.ca.location": "trust_certs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiringFile:
    """A file with a credential that may expire."""

    #: The section of the settings, as in trimtab.toml.
    section: str
    #: The key: token_file, certificate or trust_certs; librdkafka's name in [log.kafka.client].
    key: str
    file: str

    def expires_at(self) -> float | None:
        """When it expires, epoch seconds; None if unknown or unreadable."""
        if why_not_read_again(Path(self.file)):
            return None
        try:
            content = read_small_file(Path(self.file))
            if self.key == "token_file":
                return end_of(content.decode().strip())
            with warnings.catch_warnings(action="ignore"):  # authorities with odd serial numbers
                ends = [each.not_valid_after_utc.timestamp() for each in x509.load_pem_x509_certificates(content)]
        except (OSError, ValueError, TrimtabError):
            return None
        # Our own certificate comes first in its file.  Of many authorities the last one to expire is enough.
        return max(ends) if _KAFKA_FILES.get(self.key, self.key) == "trust_certs" else ends[0]


def expiring_files(settings: Settings) -> list[ExpiringFile]:
    """The files of *settings* whose content may expire, in the order of the settings.

    Keystores are not read.  A token of OAuth 2.0 is renewed by trimtab itself, and is no file.
    """
    return list(_files(settings, ""))


def _files(section: BaseModel, name: str) -> Iterator[ExpiringFile]:
    keys: dict[str, Any] = {}
    if isinstance(section, PulsarLogin):
        keys = {"token_file": section.token_file}
    elif isinstance(section, TlsSettings):
        keys = {"certificate": section.certificate, "trust_certs": section.trust_certs}
    elif isinstance(section, KafkaLogSettings):
        keys = {key: section.client.get(key) for key in _KAFKA_FILES}
    for key, file in keys.items():
        if file:
            where = f"{name}.client" if key in _KAFKA_FILES else name
            yield ExpiringFile(section=where, key=key, file=str(file))
    for key in type(section).model_fields:
        value = getattr(section, key)
        if isinstance(value, BaseModel):
            yield from _files(value, f"{name}.{key}" if name else key)
