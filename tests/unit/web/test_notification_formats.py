"""What receivers get: CloudEvents, messages for Slack and Teams, and signatures by Standard Webhooks."""

import base64
import hmac
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from controller.model.errors import SettingsError
from controller.settings.notifications import WebhookFormat
from controller.web.notifications.formats import body_for
from controller.web.notifications.signing import signature_headers, signing_keys
from controller.wire.notifications import EventKind, Notification, notification

HOSTILE = "<!channel> [x](http://inner/) <http://inner|x> & \x1b[31m\n"
PAGE = "https://trimtab.example.org/"


def notified(text: str = "10 commands failed", **data: Any) -> Notification:
    return notification("ab" * 16, EventKind.BREAKER_OPENED, 1_735_689_600_000, "east: the breaker is open", text, data)


def sent(form: WebhookFormat, each: Notification, **more: Any) -> Any:
    return json.loads(body_for(form, each, "east", **more).content)


def test_a_notification_is_a_cloudevent_for_the_sdk_of_cloudevents() -> None:
    body = body_for(WebhookFormat.CLOUDEVENTS, notified(failed=10, bundles=["a", "b"]), "east", page_url=PAGE)
    event = from_http_event(HTTPMessage(headers={"content-type": body.media_type}, body=body.content))
    assert event.get_specversion() == "1.0"
    assert (event.get_id(), event.get_source()) == ("ab" * 16, "/trimtab/east")
    assert event.get_type() == "trimtab.notification.breaker-opened"
    time, data = event.get_time(), event.get_data()
    assert time is not None
    assert time.timestamp() == 1_735_689_600
    assert isinstance(data, dict)
    assert data == {
        "cluster": "east",
        "title": "east: the breaker is open",
        "text": "10 commands failed",
        "page": PAGE,
        "failed": 10,
        "bundles": ["a", "b"],
    }


@pytest.mark.parametrize("form", list(WebhookFormat))
def test_every_format_says_how_many_notifications_were_dropped(form: WebhookFormat) -> None:
    text = json.dumps(sent(form, notified(), dropped=7))
    assert '"droppedBefore": 7' in text or "7 earlier notifications were dropped" in text
    assert "ropped" not in json.dumps(sent(form, notified()))


def test_slack_interprets_nothing_in_a_name() -> None:
    message = sent(WebhookFormat.SLACK, notified(HOSTILE), page_url=PAGE)
    texts = [block["text"] for block in message["blocks"] if "text" in block]
    assert {each["type"] for each in texts} == {"plain_text"}
    hostile = notification("0" * 32, EventKind.TEST, 0, HOSTILE, "", {})
    assert not set("<>") & set(sent(WebhookFormat.SLACK, hostile)["text"])
    assert message["blocks"][2]["elements"][0]["url"] == PAGE


def test_teams_gets_an_adaptive_card_that_interprets_nothing_in_a_name() -> None:
    message = sent(WebhookFormat.TEAMS, notified(HOSTILE), page_url=PAGE)
    [attachment] = message["attachments"]
    card = attachment["content"]
    assert (message["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    assert {run["type"] for block in card["body"] for run in block["inlines"]} == {"TextRun"}
    assert card["actions"][0]["url"] == PAGE


@pytest.mark.parametrize("form", list(WebhookFormat))
def test_whatever_names_are_like_a_body_is_small_and_on_lines_of_its_own(form: WebhookFormat) -> None:
    long = "\U0001f600\x1b\n" * 10_000
    each = notification("0" * 32, EventKind.TEST, 0, long, long, {"a": long, "b": [long] * 100})
    content = body_for(form, each, "east").content
    assert len(content) < 28_672  # the most that Teams takes
    assert "\x1b" not in json.dumps(json.loads(content), ensure_ascii=False)


def test_slacks_limits_of_blocks_are_kept() -> None:
    long = "x" * 10_000
    message = sent(WebhookFormat.SLACK, notification("0" * 32, EventKind.TEST, 0, long, long, {}), dropped=10**9)
    assert len(message["blocks"][0]["text"]["text"]) <= 150
    assert len(message["blocks"][1]["text"]["text"]) <= 3_000


def test_the_signature_is_that_of_the_specifications_example(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", encoding="utf-8")
    headers = signature_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1_614_265_330,
        b'{"test": 2432232314}',
        signing_keys(str(tmp_path / "key"), "secret_file"),
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_while_a_key_is_replaced_both_sign(tmp_path: Path) -> None:
    keys = [bytes([each]) * 32 for each in (1, 2)]
    lines = [f"whsec_{base64.b64encode(key).decode()}" for key in keys]
    (tmp_path / "key").write_text("\n".join(lines), encoding="utf-8")
    headers = signature_headers("id", 5, b"body", signing_keys(str(tmp_path / "key"), "secret_file"))
    digests = [base64.b64encode(hmac.new(key, b"id.5.body", sha256).digest()).decode() for key in keys]
    assert headers["webhook-signature"] == f"v1,{digests[0]} v1,{digests[1]}"


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_c2hvcnQ=", "not base64 !", "a\nb\nc", "whsec_" + "A" * 400])
def test_a_file_without_a_key_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as error:
        signing_keys(str(tmp_path / "key"), "secret_file")
    assert "secret_file" in str(error.value)
    assert text in ("", "whsec_") or text not in str(error.value)


def test_without_a_key_there_is_an_id_and_no_signature() -> None:
    assert signature_headers("id", 5, b"", ()) == {"webhook-id": "id", "webhook-timestamp": "5"}
