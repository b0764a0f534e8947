"""REST: what endpoints answer, and how they refuse."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from controller.web.app import create_app
from controller.web.rest.openapi import FILE, document, document_text
from controller.web.site import Site
from tests.page_data import BROKERS, BUNDLE, NAMESPACE, T
from tests.web_sites import site

OPERATOR = ("[web]", 'anonymous = "operator"', "requests_per_second = 10000.0")


@pytest.fixture
def shown(tmp_path: Path) -> Site:
    return site(tmp_path, "east", "west", web=OPERATOR)


@pytest.fixture
def client(shown: Site) -> TestClient:
    return TestClient(create_app(shown), base_url="http://localhost")


def test_the_document_in_docs_is_that_of_the_endpoints() -> None:
    assert FILE.read_text(encoding="utf-8") == document_text(), "run python -m controller.web.rest.openapi"


def test_every_operation_has_a_name_of_its_own_and_a_summary() -> None:
    operations = [each for path in document()["paths"].values() for each in path.values()]
    assert len({each["operationId"] for each in operations}) == len(operations)
    assert all(each["summary"] for each in operations)


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ("brokers", "interval", T),
        (f"brokers/{BROKERS[0]}", "broker", BROKERS[0]),
        (f"bundles/{BUNDLE}", "owner", BROKERS[1]),
        (f"bundles/{BUNDLE.replace('/', '%2F')}", "bundle", BUNDLE),
        (f"namespaces/{NAMESPACE}", "namespace", NAMESPACE),
        ("decisions", "cursor", "older"),
        (f"decisions/{T}", "verdictsTotal", 1),
        ("history", "cursor", None),
        ("clusters", "role", "operator"),
        ("status", "cluster", "east"),
        ("controls", "plan", ""),
        ("jobs", "jobs", []),
    ],
)
def test_an_endpoint_answers_from_what_is_known(client: TestClient, path: str, key: str, value: Any) -> None:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200
    assert answer.json()[key] == value


def test_unknown_values_are_null_and_never_zero(client: TestClient) -> None:
    brokers = client.get("/api/v1/brokers").json()["brokers"]
    assert brokers[1]["rateIn"] is None
    assert client.get(f"/api/v1/bundles/{BUNDLE}").json()["load"]["values"]["rate"] == [1.0, None]


def test_lists_come_in_pages(client: TestClient) -> None:
    first = client.get("/api/v1/brokers?limit=1").json()
    second = client.get(f"/api/v1/brokers?limit=1&cursor={first['cursor']}").json()
    assert [each["name"] for each in first["brokers"] + second["brokers"]] == list(BROKERS)
    assert second["cursor"] is None


def test_of_several_clusters_the_query_names_one(client: TestClient) -> None:
    assert client.get("/api/v1/status?cluster=west").json()["cluster"] == "west"
    refused = client.get("/api/v1/status?cluster=north")
    assert (refused.status_code, refused.json()["detail"]) == (404, "there are: east, west")


def test_what_has_not_changed_is_not_sent_again(client: TestClient) -> None:
    tag = client.get("/api/v1/brokers").headers["etag"]
    for sent, status in ((tag, 304), (f"W/{tag}", 304), (f'"x", {tag}', 304), ("*", 304), ('"x"', 200), ("", 200)):
        assert client.get("/api/v1/brokers", headers={"If-None-Match": sent}).status_code == status, sent


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("brokers?cursor=-1", 400),
        ("brokers?cursor=9999999999", 400),
        ("brokers?limit=0", 400),
        ("brokers?limit=501", 400),
        ("brokers?limit=1&limit=2", 400),
        ("brokers?unknown=1", 400),
        ("decisions?cursor=made-up", 400),
        ("decisions?reason=NoSuch", 400),
        ("decisions?since=-1", 400),
        (f"decisions/{10**30}", 404),
        ("decisions/1", 404),
        ("decisions/x", 404),
        ("bundles/nothing", 400),
        ("bundles/..%2f..%2fetc%2fpasswd", 400),
        ("bundles/--conf=x/y/0x00000000_0x80000000", 400),
        ("namespaces/a", 400),
        ("brokers/unknown:1", 404),
        (f"bundles/{BUNDLE}?since=5&until=1", 400),
        (f"bundles/{BUNDLE}?since=0", 400),
        (f"decisions/{T}/explain?subject=-x", 400),
        (f"decisions/{T}/explain?subject=a/b", 400),
        (f"decisions/{T}/explain?subject=%00", 400),
        ("audit?since=0&until=9999999999", 400),
        ("audit?bundle=--help", 400),
        ("jobs/unknown", 404),
        ("jobs/unknown/result", 404),
        ("nothing", 404),
    ],
)
def test_what_cannot_be_is_refused_by_name(client: TestClient, path: str, status: int) -> None:
    refused = client.get(f"/api/v1/{path}")
    assert refused.status_code == status
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["status"] == status
    assert refused.json()["detail"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"since": 0, "until": 10**9}, 400),
        ({"since": 5, "until": 1}, 400),
        ({"since": 0, "until": 1, "strategies": ["os.system"]}, 400),
        ({"since": 0, "until": 1, "strategies": ["/etc/passwd"]}, 400),
        ({"since": 0, "until": 1, "strategies": ["ThresholdShedder+os.system"]}, 400),
        ({"since": 0, "until": 1, "strategies": ["ThresholdShedder"] * 9}, 400),
        ({"since": "x", "until": 1}, 400),
        ({"until": 1}, 400),
        ([], 400),
    ],
)
def test_a_what_if_of_something_that_cannot_be_is_refused(client: TestClient, body: Any, status: int) -> None:
    assert client.post("/api/v1/whatif", json=body).status_code == status


def test_a_body_that_is_no_json_is_refused(client: TestClient) -> None:
    assert client.post("/api/v1/whatif", content="{", headers={"Content-Type": "application/json"}).status_code == 400
    assert client.post("/api/v1/whatif", content="since=0").status_code == 415


def test_another_method_is_refused_with_the_ones_that_there_are(client: TestClient) -> None:
    refused = client.request("PUT", "/api/v1/jobs/x")
    assert refused.status_code == 405
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD", "DELETE"}


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({f"X-{number}": "1" for number in range(70)}, "brokers", 431),
        ({"X-Long": "x" * 20_000}, "brokers", 431),
        ({}, f"brokers?cursor={'9' * 5000}", 414),
        ({"Content-Length": "99999999"}, "brokers", 413),
        ({"Content-Length": "-1"}, "brokers", 413),
        ({"Host": "evil.org"}, "brokers", 421),
    ],
)
def test_a_request_that_is_too_large_is_refused(
    client: TestClient, headers: dict[str, str], path: str, status: int
) -> None:
    assert client.get(f"/api/v1/{path}", headers=headers).status_code == status


def test_a_body_without_a_length_is_bounded_too(client: TestClient) -> None:
    pieces = (b"x" * 10_000 for _ in range(100))
    answer = client.post("/api/v1/whatif", content=pieces, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


def test_a_client_that_sends_too_many_requests_has_to_wait(tmp_path: Path) -> None:
    shown = site(tmp_path, "east", web=("[web]", 'anonymous = "viewer"', "requests_per_second = 1.0"))
    client = TestClient(create_app(shown), base_url="http://localhost", client=("10.0.0.1", 1))
    statuses = [client.get("/api/v1/brokers").status_code for _ in range(8)]
    assert statuses[:5] == [200] * 5
    assert 429 in statuses[5:]
    other = TestClient(create_app(shown), base_url="http://localhost", client=("10.0.0.2", 1))
    assert other.get("/api/v1/brokers").status_code == 200


def test_names_that_are_markup_stay_text(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\"'&"
    shown = site(tmp_path, "east")
    shown.clusters["east"].data.brokers_named = (hostile, hostile)  # type: ignore[attr-defined]
    shown.clusters["east"].data.summary = hostile  # type: ignore[attr-defined]
    client = TestClient(create_app(shown), base_url="http://localhost")
    answer = client.get("/api/v1/brokers")
    assert answer.json()["brokers"][0]["name"] == hostile
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    for path in ("/", f"/?cluster={hostile}", f"/{hostile}", f"/login?next={hostile}"):
        page = client.get(path).text
        assert "<script>alert" not in page, path


def test_a_fault_of_ours_is_500_and_says_nothing_of_it(shown: Site) -> None:
    def broken() -> None:
        raise RuntimeError("a password is hunter2")

    shown.clusters["east"].data.brokers = broken  # type: ignore[method-assign]
    client = TestClient(create_app(shown), base_url="http://localhost")
    answer = client.get("/api/v1/brokers")
    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert answer.headers["content-security-policy"]
