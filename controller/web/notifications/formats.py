"""A notification as the body of a request: as a CloudEvent, for Slack and for Teams.

Names in a notification come from brokers and records.  Slack's ``plain_text`` and the ``TextRun`` of an Adaptive Card
interpret nothing, so that no name becomes a link or a mention.
"""

import json
from typing import Any, Final, NamedTuple, assert_never

from controller.settings.notifications import WebhookFormat
from controller.wire.notifications import Notification, encode_event
from controller.wire.readable import counted, utc

_JSON: Final = "application/json"
#: The newest version that workflows of every kind of Teams show.
_CARD_VERSION: Final = "1.4"


class Body(NamedTuple):
    """What is sent."""

    content: bytes
    media_type: str


def body_for(
    form: WebhookFormat, notified: Notification, cluster: str, *, dropped: int = 0, page_url: str = ""
) -> Body:
    """*notified* of *cluster* in *form*; *dropped* notifications before it were given up.  *page_url*: "" for none."""
    match form:
        case WebhookFormat.CLOUDEVENTS:
            content = encode_event(notified, cluster, dropped=dropped, page_url=page_url)
            return Body(content, "application/cloudevents+json; charset=UTF-8")
        case WebhookFormat.SLACK:
            return Body(json.dumps(_slack(notified, dropped, page_url)).encode(), _JSON)
        case WebhookFormat.TEAMS:
            return Body(json.dumps(_teams(notified, dropped, page_url)).encode(), _JSON)
        case other:
            assert_never(other)


def _lines(notified: Notification, dropped: int) -> list[str]:
    lost = f"{counted(dropped, 'earlier notification was', 'earlier notifications were')} dropped." if dropped else ""
    return [each for each in (notified.text, lost, utc(notified.at_ms)) if each]


def _slack(notified: Notification, dropped: int, page_url: str) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "header", "text": _plain(notified.title)}]
    blocks.append({"type": "section", "text": _plain("\n".join(_lines(notified, dropped)))})
    if page_url:
        button = {"type": "button", "text": _plain("Open the page"), "url": page_url}
        blocks.append({"type": "actions", "elements": [button]})
    # ``text`` is what the notification on a phone shows; there & < > are the characters with a meaning.
    return {"text": _escaped(notified.title), "blocks": blocks}


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _teams(notified: Notification, dropped: int, page_url: str) -> dict[str, Any]:
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": _CARD_VERSION,
        "body": [
            _run(notified.title, weight="Bolder", size="Medium"),
            *(_run(line) for line in _lines(notified, dropped)),
        ],
    }
    if page_url:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open the page", "url": page_url}]
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def _run(text: str, **style: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}
