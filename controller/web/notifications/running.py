"""Notifications of one cluster beside its page; and one by hand, to try whether they arrive."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final
from uuid import uuid4

from controller.adapters.metrics.web import WebMetrics
from controller.adapters.network.calls import side_by_side
from controller.log.elections import election_system
from controller.settings.trimtab_toml import Settings
from controller.web.notifications.facts import proposals_in
from controller.web.notifications.sender import NotificationSender
from controller.web.notifications.webhook import Webhook
from controller.web.store.queries import PageData
from controller.wire.notifications import EventKind, notification

#: At the end the thread stores what became of the last requests.
_END_SECONDS: Final = 3.0
#: One request has an end of its own; this is for a name server that does not answer.
_TEST_SECONDS: Final = 30.0


def receivers(settings: Settings) -> dict[str, Webhook]:
    """The webhooks in *settings* by name.  SettingsError where a file that they name cannot be used."""
    section, cluster = settings.notifications, settings.cluster.name
    return {each.name: Webhook(each, cluster, page_url=section.page_url) for each in section.webhooks}


@contextmanager
def notified(settings: Settings, data: PageData, metrics: WebMetrics) -> Iterator[None]:
    """Within the block the webhooks in *settings* hear what is new in *data*; nothing happens where there are none."""
    webhooks = receivers(settings)
    if not webhooks:
        yield
        return
    election, ended = election_system(settings), threading.Event()
    with closing(election.proposals()) as proposals:
        sender = NotificationSender(
            settings,
            data,
            election.notifications(),
            webhooks,
            metrics,
            read_proposals=lambda: proposals_in(proposals, settings, time.time_ns() // 1_000_000),
        )
        thread = threading.Thread(target=sender.run, args=[ended], name="notifications", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(_END_SECONDS)


def send_test(settings: Settings) -> dict[str, str]:
    """Send a notification to each webhook in *settings*, whatever kinds it wants: name -> why it was not accepted, or
    "".  SettingsError."""
    webhooks = receivers(settings)
    notified = notification(
        uuid4().hex,
        EventKind.TEST,
        time.time_ns() // 1_000_000,
        f"{settings.cluster.name}: a test",
        "Somebody tries whether notifications arrive. Nothing is wrong.",
        {},
    )
    calls = {name: lambda webhook=webhook: webhook.send(notified) for name, webhook in webhooks.items()}
    ended = side_by_side(calls, _TEST_SECONDS)
    return {name: "" if call.error is None else str(call.error) for name, call in ended.items()}
