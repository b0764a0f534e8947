"""Changes of the controls by REST: who may, what they state, and that nothing is lost, done twice or hidden."""

import json
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from controller.log.elections import election_system
from controller.model.controls import MAX_REFUSED, Choice, ControlChange, OperatorControls, Pause
from controller.web.app import create_app
from controller.web.control_desk import ControlDesk
from controller.web.site import Site
from tests.page_data import BROKERS, NAMESPACE
from tests.proposals import key_of
from tests.web_people import WRITES, token_of, tokens_file
from tests.web_sites import site


@pytest.fixture
def shown(tmp_path: Path) -> Site:
    return site(tmp_path, "east", web=(*WRITES, tokens_file(tmp_path)))


class Person:
    """Sends requests under a name, to *shown*."""

    def __init__(self, shown: Site, name: str) -> None:
        self.client = TestClient(create_app(shown), base_url="http://localhost")
        self.client.headers["Authorization"] = f"Bearer {token_of(name)}"

    def version(self) -> str:
        return str(self.client.get("/api/v1/controls").headers["etag"])

    def post(self, action: str, version: str | None = "", key: str = "", **body: Any) -> Any:
        """*version*: of the controls, "" for the present one, None for none."""
        headers = {} if version is None else {"If-Match": version or self.version()}
        headers |= {"Idempotency-Key": key} if key else {}
        return self.client.post(f"/api/v1/controls/{action}", json={"reason": "why", **body}, headers=headers)


def _stored(shown: Site) -> OperatorControls:
    return election_system(shown.clusters["east"].settings).controls().read()[0]


def _store(shown: Site, controls: OperatorControls) -> None:
    store = election_system(shown.clusters["east"].settings).controls()
    assert store.write(controls, store.version())


def test_each_change_is_stored_and_in_the_history_with_the_name_of_the_login(shown: Site) -> None:
    otto = Person(shown, "otto")
    for action, body in (
        ("pause", {"minutes": 5}),
        ("resume", {}),
        ("mode", {"mode": "dry_run"}),
        ("drain", {"brokers": [BROKERS[0]]}),
        ("release", {"brokers": [BROKERS[0]]}),
        ("exclude", {"names": [NAMESPACE]}),
        ("include", {"names": [NAMESPACE]}),
        ("stop-all", {}),
    ):
        answer = otto.post(action, **body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["by"] == "otto"
        last = _stored(shown).history[-1]
        assert (last.action, last.by, last.reason) == (action, "otto", "why")
        assert answer.headers["etag"] == f'"{otto.version().strip(chr(34)).partition(".")[0]}"'
    stored = _stored(shown)
    assert stored.mode is not None
    assert (stored.mode.value, stored.mode.by, stored.drained) == ("dry_run", "otto", ())
    assert [each.by for each in stored.pauses] == ["otto"]


def test_a_stop_of_everything_starts_an_epoch_and_says_its_number(shown: Site) -> None:
    assert Person(shown, "otto").post("stop-all").json()["epoch"] == 1
    assert election_system(shown.clusters["east"].settings).controls().epoch() == 1


@pytest.mark.parametrize("action", ["pause", "resume", "mode", "stop-all"])
def test_nobody_writes_without_a_name_though_anonymous_has_a_role(shown: Site, action: str) -> None:
    client = TestClient(create_app(shown), base_url="http://localhost")
    body = {"reason": "why"} | ({"mode": "active"} if action == "mode" else {})
    refused = client.post(f"/api/v1/controls/{action}", json=body, headers={"If-Match": "*"})
    assert refused.status_code == 403
    assert "Log in" in refused.json()["detail"]
    assert _stored(shown) == OperatorControls()


def test_without_the_setting_nobody_writes(tmp_path: Path) -> None:
    shown = site(tmp_path, "east", web=("[web]", tokens_file(tmp_path)))
    refused = Person(shown, "otto").post("pause", "*")
    assert (refused.status_code, _stored(shown)) == (403, OperatorControls())
    assert "[web] writes" in refused.json()["detail"]


def test_a_viewer_is_refused_and_the_history_says_so_once_a_minute(shown: Site) -> None:
    vera = Person(shown, "vera")
    for _ in range(3):
        assert vera.post("mode", "*", mode="active").status_code == 403
    stored = _stored(shown)
    assert stored.history == ()
    assert [(each.by, each.action) for each in stored.refused] == [("vera", "refused")]
    assert "mode: vera is a viewer, and this needs the role operator" in stored.refused[0].detail


def test_only_a_change_of_the_controls_has_others_read_them_anew(shown: Site) -> None:
    read = list[int]()
    settings = shown.clusters["east"].settings
    desk = ControlDesk(lambda: election_system(settings).controls(), written=lambda: read.append(1))
    with closing(desk):
        for at_ms in range(0, 50_000, 1000):
            desk.refuse(by="vera", action="controls/mode", why="no", at_ms=at_ms)
        assert len(read) == 1
        desk.refuse(by="vera", action="controls/drain", why="no", at_ms=50_000)
    assert len(read) == 2
    assert [each.detail for each in _stored(shown).refused] == ["controls/mode: no", "controls/drain: no"]


def test_a_flood_of_refused_attempts_leaves_the_history_alone() -> None:
    controls = OperatorControls(history=(ControlChange(at_ms=1, by="ada", action="pause"),))
    for at in range(500):
        controls = controls.with_refused(ControlChange(at_ms=at, by=f"p{at}", action="refused", detail="mode"))
    assert len(controls.refused) == MAX_REFUSED
    assert [each.by for each in controls.history] == ["ada"]


def test_a_name_that_would_be_cut_to_that_of_another_person_is_refused(shown: Site) -> None:
    refused = Person(shown, "x" * 101).post("pause", "*")
    assert (refused.status_code, _stored(shown)) == (403, OperatorControls())


@pytest.mark.parametrize("action", ["pause", "resume", "mode", "release", "stop-all"])
def test_a_write_says_what_its_sender_has_seen(shown: Site, action: str) -> None:
    bodies: dict[str, Any] = {"mode": {"mode": "active"}, "release": {"brokers": [BROKERS[0]]}}
    refused = Person(shown, "otto").post(action, None, **bodies.get(action, {}))
    assert (refused.status_code, _stored(shown)) == (428, OperatorControls())
    assert "If-Match" in refused.json()["detail"]


def test_who_looked_at_older_controls_hears_who_changed_them_and_when(shown: Site) -> None:
    otto, anna = Person(shown, "otto"), Person(shown, "anna")
    seen = otto.version()
    assert anna.post("mode", mode="observe").status_code == 200
    before = _stored(shown)
    refused = otto.post("mode", seen, mode="active")
    assert refused.status_code == 412
    assert "mode observe, by anna: why" in refused.json()["detail"]
    assert _stored(shown) == before
    assert otto.post("mode", mode="active").status_code == 200


@pytest.mark.parametrize("approvals", [(), ("[approvals.keys.ada]", f'key = "{key_of("ada").public_text}"')])
def test_who_was_too_late_and_looks_again_sees_what_another_server_changed(
    tmp_path: Path, approvals: tuple[str, ...]
) -> None:
    web = (*WRITES, tokens_file(tmp_path), *approvals)
    one, other = (Person(site(tmp_path, "east", web=web), "otto") for _ in range(2))
    seen = one.version()
    assert other.post("mode", seen, mode="observe").status_code == 200
    assert one.post("mode", seen, mode="dry_run").status_code == 412
    assert one.post("mode", one.version(), mode="observe").status_code == 200


@pytest.mark.parametrize("version", ['"nonsense"', 'W/"*"', "", ","])
def test_a_version_that_is_none_never_matches(shown: Site, version: str) -> None:
    _store(shown, OperatorControls(mode=Choice(value="observe", reason="", by="bob", at_ms=1)))
    otto = Person(shown, "otto")
    answer = otto.client.post("/api/v1/controls/resume", json={"reason": "why"}, headers={"If-Match": version})
    assert answer.status_code == 412


@pytest.mark.parametrize("action", ["pause", "stop-all"])
def test_whoever_stops_is_never_too_late(shown: Site, action: str) -> None:
    otto, anna = Person(shown, "otto"), Person(shown, "anna")
    seen = otto.version()
    assert anna.post("mode", mode="observe").status_code == 200
    assert otto.post(action, seen).status_code == 200
    assert [each.action for each in _stored(shown).history] == ["mode", action]


def test_orders_of_a_plan_that_are_renewed_are_no_change_of_the_controls(shown: Site) -> None:
    otto = Person(shown, "otto")
    seen = otto.version()
    _store(shown, OperatorControls(refused=(ControlChange(at_ms=1, by="eve", action="refused"),)))
    assert otto.post("resume", seen).status_code == 200


def test_a_request_that_is_sent_again_is_answered_alike_and_not_carried_out_again(tmp_path: Path) -> None:
    web = (*WRITES, tokens_file(tmp_path))
    one, other = (Person(site(tmp_path, "east", web=web), "otto") for _ in range(2))  # two servers of one cluster
    seen = one.version()
    first = one.post("resume", seen, "k-1")
    again = other.post("resume", seen, "k-1")
    assert (first.status_code, first.json(), first.headers["etag"]) == (200, again.json(), again.headers["etag"])
    assert again.status_code == 200
    stop = one.post("stop-all", "*", "k-2")
    assert other.post("stop-all", "*", "k-2").json() == stop.json()
    assert stop.json()["epoch"] == 1


def test_a_key_that_was_used_for_something_else_is_refused(shown: Site) -> None:
    otto, anna = Person(shown, "otto"), Person(shown, "anna")
    assert otto.post("pause", "*", "k").status_code == 200
    before = _stored(shown)
    assert otto.post("pause", "*", "k", minutes=5).status_code == 422
    assert otto.post("stop-all", "*", "k").status_code == 422
    assert _stored(shown) == before
    assert anna.post("pause", "*", "k").status_code == 200, "it is another person's key"


def test_keys_are_kept_for_a_day_and_a_bounded_number(tmp_path: Path) -> None:
    now = [1_000_000]
    shown = site(tmp_path, "east", web=(*WRITES, tokens_file(tmp_path)), now_ms=lambda: now[0])
    otto = Person(shown, "otto")
    assert otto.post("pause", "*", "k").status_code == 200
    now[0] += 86_400_001
    assert otto.post("pause", "*", "k", minutes=5).status_code == 200
    assert len(_stored(shown).requests) == 1


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "a\tb"])
def test_a_key_that_cannot_be_is_refused(shown: Site, key: str) -> None:
    otto = Person(shown, "otto")
    headers = {"If-Match": "*", "Idempotency-Key": key}
    assert otto.client.post("/api/v1/controls/pause", json={"reason": "why"}, headers=headers).status_code == 400


@pytest.mark.parametrize(
    ("action", "body", "status"),
    [
        ("pause", {"reason": ""}, 400),
        ("pause", {"reason": "  "}, 400),
        ("pause", {"reason": "x" * 501}, 400),
        ("pause", {"minutes": 0}, 400),
        ("pause", {"by": "ada"}, 400),
        ("mode", {}, 400),
        ("mode", {"mode": "all"}, 400),
        ("drain", {"brokers": []}, 400),
        ("drain", {"brokers": ["x" * 5000]}, 400),
        ("drain", {"brokers": ["nowhere:8080"]}, 409),
        ("release", {"brokers": [BROKERS[0]]}, 409),
        ("resume", {"of": ["nobody"]}, 409),
        ("stop-plan", {"plan": "ab" * 32}, 409),
        ("stop-plan", {"plan": "ab"}, 400),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(shown: Site, action: str, body: Any, status: int) -> None:
    _store(shown, paused := OperatorControls(pauses=(Pause(by="ada", reason="upgrade", at_ms=1),)))
    answer = Person(shown, "otto").post(action, **body)
    assert answer.status_code == status, answer.text
    assert answer.json()["detail"]
    assert _stored(shown) == paused


def test_another_site_makes_no_browser_write(shown: Site) -> None:
    client = TestClient(create_app(shown), base_url="http://localhost")
    client.post("/login", data={"token": token_of("otto")}, headers={"Sec-Fetch-Site": "same-origin"})
    for where in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://evil"}, {}):
        headers = {"If-Match": "*", **where}
        assert client.post("/api/v1/controls/pause", json={"reason": "why"}, headers=headers).status_code == 403
    assert _stored(shown) == OperatorControls()
    own = {"If-Match": "*", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/v1/controls/pause", json={"reason": "why"}, headers=own).status_code == 200


def test_servers_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    web = (*WRITES, tokens_file(tmp_path))
    servers = [site(tmp_path, "east", web=web) for _ in range(2)]
    statuses: list[int] = []

    def pause(number: int) -> None:
        answer = Person(servers[number % 2], "otto").post("pause", "*", reason=f"pause {number}")
        statuses.append(answer.status_code)

    threads = [threading.Thread(target=pause, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    done = statuses.count(200)
    stored = _stored(servers[0])
    assert len(stored.history) == len(stored.pauses) == done
    assert set(statuses) <= {200, 503}, "who did not get through is told, and may try again"


def test_the_controls_away_is_said_and_nothing_is_changed(tmp_path: Path) -> None:
    shown = site(tmp_path, "east", web=(*WRITES, tokens_file(tmp_path)))
    (tmp_path / "east" / "election").write_text("no folder")
    answer = Person(shown, "otto").post("pause", "*")
    assert answer.status_code == 503
    assert "nothing was changed" in answer.json()["detail"]


def test_controls_that_cannot_be_read_are_replaced_by_what_stops_alone(shown: Site) -> None:
    file = Path(shown.clusters["east"].settings.election.path) / "controls.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"v": 2}))
    otto = Person(shown, "otto")
    assert otto.post("resume", "*").status_code == 503
    assert otto.post("pause", "*").status_code == 200
