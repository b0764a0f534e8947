"""Forms that change the controls, without a script: what they say, what they do, and who may send them."""

import csv
import io
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from controller.log.elections import election_system
from controller.model.controls import Drained, OperatorControls, Pause
from controller.web.app import create_app
from controller.web.site import Site
from controller.web.store.values import ControlEvent
from tests.invented_pages import NOW, broker_name, bundle_name, states
from tests.web_people import WRITES, token_of, tokens_file
from tests.web_sites import site

OWN = {"Sec-Fetch-Site": "same-origin"}
BUNDLE = bundle_name(0)
NAMESPACE = BUNDLE.rpartition("/")[0]


@pytest.fixture
def shown(tmp_path: Path) -> Site:
    return site(
        tmp_path,
        "harbour-eu",
        now_ms=lambda: NOW,
        data=states()["normal"],
        web=('decisions.mode = "active"', *WRITES, tokens_file(tmp_path)),
    )


def logged_in(shown: Site, name: str) -> TestClient:
    """A browser of the person *name*."""
    client = TestClient(create_app(shown), base_url="http://localhost", follow_redirects=False)
    client.post("/login", data={"token": token_of(name)}, headers=OWN)
    return client


class _Fields(HTMLParser):
    """The fields of the form that is for a write."""

    def __init__(self) -> None:
        super().__init__()
        self.action = ""
        self.fields: dict[str, Any] = {}

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        values = dict(attrs)
        if tag == "form" and values.get("action", "").startswith(("/controls/", "/proposals")):
            self.action = values["action"]
        elif self.action and tag == "input" and (values.get("type") != "checkbox" or "checked" in values):
            self.fields.setdefault(values["name"], []).append(values.get("value", ""))


def fields_of(text: str) -> _Fields:
    found = _Fields()
    found.feed(text)
    return found


def submitted(client: TestClient, path: str, headers: dict[str, str] = OWN, **more: Any) -> Any:
    """Open the form at *path*, fill it in, and send it."""
    form = fields_of(client.get(path).text)
    return client.post(form.action, data={**form.fields, "reason": "disk swap", **more}, headers=headers)


def stored(shown: Site) -> OperatorControls:
    return election_system(shown.clusters["harbour-eu"].settings).controls().read()[0]


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("/controls/pause", "/controls"),
        ("/controls/resume", "/controls"),
        ("/controls/mode?mode=dry_run", "/controls"),
        ("/controls/mode?mode=settings", "/controls"),
        ("/controls/stop-all", "/controls"),
        (f"/controls/exclude?names={quote(BUNDLE)}", f"/bundles/{BUNDLE}"),
        (f"/controls/exclude?names={quote(NAMESPACE)}", f"/namespaces/{NAMESPACE}"),
        (f"/controls/drain?brokers={quote(broker_name(4))}", f"/brokers/{quote(broker_name(4), safe='')}"),
    ],
)
def test_a_form_does_what_it_says_under_the_name_of_the_login(shown: Site, path: str, leads_to: str) -> None:
    answer = submitted(logged_in(shown, "otto"), path)
    assert (answer.status_code, answer.headers["location"]) == (303, leads_to)
    last = stored(shown).history[-1]
    assert (last.by, last.reason, last.at_ms) == ("otto", "disk swap", NOW)


def test_after_a_pause_the_page_says_that_it_is_stored_and_not_that_it_is_done(shown: Site) -> None:
    client = logged_in(shown, "otto")
    submitted(client, "/controls/pause", minutes="60")
    text = client.get("/controls").text
    assert "not in force yet:</b> the pause of otto" in text
    assert "<h1>The mode is active</h1>" in text, "the log does not say yet that it is paused"
    assert client.get("/controls/resume").text.count("otto (“disk swap”)") == 1


def test_a_form_sends_a_name_as_it_is_stored_also_one_that_is_shown_otherwise(shown: Site) -> None:
    mixed = "\u0430da"  # its first letter is a Cyrillic one
    store = election_system(shown.clusters["harbour-eu"].settings).controls()
    store.write(OperatorControls(pauses=(Pause(by=mixed, reason="", at_ms=5),)), store.version())
    client = logged_in(shown, "otto")
    assert ">\\u0430da</label>" in client.get("/controls/resume").text
    assert submitted(client, "/controls/resume").status_code == 303
    assert not stored(shown).pauses


def test_a_form_that_is_sent_twice_is_carried_out_once(shown: Site) -> None:
    client = logged_in(shown, "otto")
    form = fields_of(client.get("/controls/pause").text)
    for _ in range(2):
        assert client.post(form.action, data={**form.fields, "reason": "x"}, headers=OWN).status_code == 303
    assert len(stored(shown).history) == 1


def test_who_is_too_late_sees_who_was_faster_and_may_set_it_again(shown: Site) -> None:
    otto, anna = logged_in(shown, "otto"), logged_in(shown, "anna")
    form = fields_of(otto.get("/controls/mode?mode=observe").text)
    submitted(anna, "/controls/mode?mode=dry_run")
    late = otto.post(form.action, data={**form.fields, "reason": "mine"}, headers=OWN)
    assert late.status_code == 412
    assert "mode dry_run, by anna: disk swap" in late.text
    assert "mine" in late.text, "what was written is not lost"
    again = fields_of(late.text)
    assert otto.post(again.action, data={**again.fields, "reason": "mine"}, headers=OWN).status_code == 303
    assert [each.by for each in stored(shown).history] == ["anna", "otto"]


@pytest.mark.parametrize(
    ("name", "why"), [("vera", "This needs the role operator; vera is a viewer."), ("", "Log in first")]
)
def test_whoever_may_not_sees_the_controls_disabled_with_the_reason(shown: Site, name: str, why: str) -> None:
    client = logged_in(shown, name) if name else TestClient(create_app(shown), base_url="http://localhost")
    for path in ("/controls", f"/brokers/{quote(broker_name(4))}", "/controls/pause"):
        text = client.get(path).text
        assert why in text, path
        assert "<button disabled>" in text.replace('class="primary" ', "") or "<button type=" in text, path
        assert "data-dialog" not in text, path
    refused = client.post("/controls/pause", data={"reason": "x", "version": "*"}, headers=OWN)
    assert refused.status_code == 403
    assert why in refused.text
    assert stored(shown).history == ()


def test_where_the_server_only_reads_every_control_says_so(tmp_path: Path) -> None:
    shown = site(
        tmp_path, "harbour-eu", now_ms=lambda: NOW, data=states()["normal"], web=("[web]", tokens_file(tmp_path))
    )
    client = logged_in(shown, "anna")
    assert "[web] writes = true" in client.get("/controls").text
    assert client.post("/controls/pause", data={"reason": "x"}, headers=OWN).status_code == 403
    assert stored(shown) == OperatorControls()


def test_another_site_sends_no_form(shown: Site) -> None:
    client = logged_in(shown, "otto")
    for where in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil"}, {"Origin": "null"}, {}):
        assert submitted(client, "/controls/stop-all", where).status_code == 403
    assert stored(shown) == OperatorControls()


@pytest.mark.parametrize(
    "data",
    [
        {"reason": ""},
        {"reason": " "},
        {"reason": "x", "minutes": "-1"},
        {"reason": "x", "minutes": "soon"},
        {"reason": "x", "by": "ada"},
        {"reason": "x" * 501},
    ],
)
def test_a_form_with_something_that_cannot_be_is_shown_again(shown: Site, data: dict[str, str]) -> None:
    client = logged_in(shown, "otto")
    answer = client.post("/controls/pause", data={"version": "*", **data}, headers=OWN)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert stored(shown) == OperatorControls()


def test_a_body_that_is_no_form_is_refused(shown: Site) -> None:
    client = logged_in(shown, "otto")
    assert client.post("/controls/pause", json={"reason": "x"}, headers=OWN).status_code == 415
    many = {f"n{number}": "1" for number in range(500)}
    assert client.post("/controls/pause", data=many, headers=OWN).status_code == 400
    assert client.post("/controls/nothing", data={"reason": "x"}, headers=OWN).status_code == 404


def test_the_history_has_the_refused_and_is_exported_without_formulas(tmp_path: Path) -> None:
    data = states()["normal"]
    shown = site(tmp_path, "harbour-eu", now_ms=lambda: NOW, data=data, web=(*WRITES, tokens_file(tmp_path)))
    data.control_events = (
        ControlEvent(at_ms=NOW, by="=cmd|' /C calc'!A0", action="refused", detail="mode: no", reason="@x"),
    )
    client = logged_in(shown, "vera")
    assert 'class="chip failed"' in client.get("/history").text
    answer = client.get("/history.csv")
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert "attachment" in answer.headers["content-disposition"]
    assert rows[1][1:] == ["'=cmd|' /C calc'!A0", "refused", "mode: no", "'@x"]
    assert client.get("/history.json").json()["events"][0]["action"] == "refused"


def test_a_drained_broker_is_released_on_its_page(shown: Site) -> None:
    name = broker_name(4)
    store = election_system(shown.clusters["harbour-eu"].settings).controls()
    store.write(OperatorControls(drained=(Drained(broker=name, by="ada", at_ms=NOW),)), store.version())
    client = logged_in(shown, "otto")
    page = client.get(f"/brokers/{quote(name)}").text
    assert "Drained</b> by ada" in page
    assert "Release…" in page
    submitted(client, f"/controls/release?brokers={quote(name)}")
    assert stored(shown).drained == ()


@pytest.mark.parametrize(
    "action", ["pause", "resume", "mode", "drain", "release", "exclude", "include", "stop-all", "stop-plan"]
)
@pytest.mark.parametrize(
    "query", ["", "?mode=<img>&brokers=<img>&plan=<img>&of=<img>&names=<img>", "?mode=&brokers=&plan=&names="]
)
def test_a_form_shows_whatever_its_address_has_as_text(shown: Site, action: str, query: str) -> None:
    answer = logged_in(shown, "otto").get(f"/controls/{action}{query}")
    assert answer.status_code == 200
    assert "<img" not in answer.text


def test_a_bundle_and_a_namespace_are_excluded_and_included_on_their_pages(shown: Site) -> None:
    client = logged_in(shown, "otto")
    assert f'href="/controls/exclude?names={quote(BUNDLE, safe="")}"' in client.get(f"/bundles/{BUNDLE}").text
    submitted(client, f"/controls/exclude?names={quote(NAMESPACE)}")
    assert [(each.name, each.by, each.reason) for each in stored(shown).excluded] == [(NAMESPACE, "otto", "disk swap")]
    for path in (f"/bundles/{BUNDLE}", f"/namespaces/{NAMESPACE}"):
        text = client.get(path).text
        assert "Excluded</b> by otto" in text, path
        assert "Exclude…" not in text, path
        assert ("Include…" in text) == path.startswith("/namespaces"), path
    assert "not in force yet:</b> what is excluded" in client.get("/controls").text
    submitted(client, f"/controls/include?names={quote(NAMESPACE)}")
    assert stored(shown).excluded == ()


def test_what_is_excluded_stays_on_the_pages_while_the_controls_cannot_be_read(shown: Site) -> None:
    data: Any = shown.clusters["harbour-eu"].data
    data.state = replace(data.state, controls=replace(data.state.controls, excluded=(NAMESPACE,)))
    election = shown.clusters["harbour-eu"].settings.election.path
    Path(election).mkdir(exist_ok=True)
    (Path(election) / "controls.json").write_text("{", encoding="utf-8")
    client = logged_in(shown, "otto")
    for path in (f"/bundles/{BUNDLE}", f"/namespaces/{NAMESPACE}"):
        assert "Excluded</b>. " in client.get(path).text, path
        assert "Exclude…" not in client.get(path).text, path
    text = client.get("/controls").text
    assert f"<code>{NAMESPACE}</code>" in text
    assert "No namespace or bundle is" not in text


def test_several_are_excluded_by_the_form_of_the_controls_and_none_that_nobody_has_seen(shown: Site) -> None:
    client = logged_in(shown, "otto")
    for names, status in (
        ("nothing", 400),
        ("*/*", 409),
        ("tenant/ns/0x0_0x1", 400),
        (f"{NAMESPACE}\nacme/misspelt", 409),
    ):
        answer = submitted(client, "/controls/exclude", names=names)
        assert answer.status_code == status, answer.text
    assert stored(shown).excluded == ()
    assert submitted(client, "/controls/exclude", names=f"{NAMESPACE}\r\n{BUNDLE}\r\n").status_code == 303
    assert [each.name for each in stored(shown).excluded] == [NAMESPACE, BUNDLE]


def test_where_the_breaker_is_open_the_first_page_leads_to_resume(tmp_path: Path) -> None:
    web = (*WRITES, tokens_file(tmp_path))
    shown = site(tmp_path, "harbour-eu", now_ms=lambda: NOW, data=states()["breaker"], web=web)
    assert 'href="/controls/resume"' in logged_in(shown, "otto").get("/").text
    assert 'href="/controls/resume"' not in logged_in(shown, "vera").get("/").text
