"""One request to a webhook, with an end whatever the receiver does.

Its answer is the status alone: redirects are not followed, and no body is read.
"""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from urllib3 import Timeout

from controller.adapters.network.pool import HttpError, RefusedAddressError, because, connection_pool
from controller.adapters.network.tls import Tls
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.notifications import WebhookSettings
from controller.settings.redaction import SECRETS, read_secret, redacted
from controller.web.notifications.formats import body_for
from controller.web.notifications.signing import signature_headers, signing_keys
from controller.wire.notifications import Notification

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class WebhookLimits(NamedTuple):
    """Limits on each step of a connection, TLS included, and on the whole head of the answer, seconds."""

    connect: float = 5.0
    answer: float = 10.0


LIMITS: Final = WebhookLimits()


class NotAcceptedError(TrimtabError):
    """A receiver did not accept a notification; it may be sent again."""


class Webhook:
    """Sends notifications of *cluster* to one receiver.  *now*: seconds since 1970."""

    def __init__(
        self,
        settings: WebhookSettings,
        cluster: str,
        *,
        page_url: str = "",
        now: Callable[[], float] = time.time,
        limits: WebhookLimits = LIMITS,
    ) -> None:
        """SettingsError where a file that *settings* name cannot be used."""
        self.name, self.kinds = settings.name, frozenset(settings.events)
        self._settings, self._cluster, self._page_url, self._now = settings, cluster, page_url, now
        self._limits = limits
        self._key = f"notifications.webhooks {settings.name}"
        self._url()
        self._keys()

    def send(self, notified: Notification, dropped: int = 0) -> None:
        """Have *notified* accepted, or NotAcceptedError; *dropped* notifications before it were given up.

        Files are read anew for each request: keys and addresses are replaced while a process runs.
        """
        try:
            url, keys = self._url(), self._keys()
        except SettingsError as error:
            raise NotAcceptedError(str(error)) from error
        settings = self._settings
        body = body_for(settings.format, notified, self._cluster, dropped=dropped, page_url=self._page_url)
        headers = {"Content-Type": body.media_type, "User-Agent": "trimtab", "Connection": "close"}
        headers |= signature_headers(notified.id, int(self._now()), body.content, keys)
        status = self._status(url, headers, body.content)
        if status in _REDIRECTS:
            raise NotAcceptedError(f"it answered {status}: redirects are not followed; set the address that it names")
        if not 200 <= status < 300:
            raise NotAcceptedError(f"it answered {status}")

    def _status(self, url: str, headers: dict[str, str], content: bytes) -> int:
        try:
            tls = Tls(trust_certs=self._settings.trust_certs or "")
            context = tls.context("the receiver") if url.startswith("https:") else None
            pool = connection_pool(
                hosts=1, connections=1, ssl_context=context, verify_host=True, why_refused=self._settings.why_refused
            )
            try:
                response = pool.request(
                    "POST",
                    url,
                    body=content,
                    headers=headers,
                    redirect=False,
                    timeout=Timeout(connect=self._limits.connect, read=self._limits.answer),
                    preload_content=False,
                )
                response.close()
            finally:
                pool.clear()
        except RefusedAddressError as error:
            raise NotAcceptedError(str(error)) from None
        except HttpError as error:
            raise NotAcceptedError(f"no answer: {because(error)}") from None
        except (TrimtabError, ValueError) as error:
            raise NotAcceptedError(redacted(str(error))) from None
        return int(response.status)

    def _url(self) -> str:
        settings = self._settings
        if settings.url_file is None:
            return settings.url
        url = read_secret(settings.url_file, f"{self._key} url_file")
        # The path is what must not be shown; a host is not a secret.
        SECRETS.register(f"{self._key} url_file", url.partition("://")[2].partition("/")[2])
        try:
            settings.refuse_bad_address(url)
        except ValueError as error:
            raise SettingsError(f"{self._key} url_file: {error}") from None
        return url

    def _keys(self) -> tuple[bytes, ...]:
        path = self._settings.secret_file
        return () if path is None else signing_keys(path, f"{self._key} secret_file")
