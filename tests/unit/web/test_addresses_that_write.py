"""Every address that takes a POST or a DELETE, by the table of routes: who gets no further than a refusal."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from controller.web.app import create_app
from controller.web.control_actions import ACTIONS
from controller.web.proposal_actions import ACTIONS as PROPOSAL_ACTIONS
from controller.web.site import Site
from tests.unit.web.test_proposals_by_rest import history, page_of, proposed, stored
from tests.web_people import token_of

#: Whoever may look logs in and out there.
_FOR_EVERYBODY = {"/login", "/login/out"}
#: What each kind of address takes.
_JSON: dict[str, Any] = {"content": b'{"reason": "x"}', "headers": {"Content-Type": "application/json"}}
_FORM: dict[str, Any] = {"data": {"reason": "x", "version": "*"}}


@pytest.fixture
def shown(tmp_path: Path) -> Site:
    return page_of(tmp_path)


def _writing(shown: Site, key: str) -> Iterator[str]:
    """The addresses that take a POST, about the proposal *key*."""
    for route in create_app(shown).routes:
        assert isinstance(route, Route)
        if "POST" not in (route.methods or ()) or route.path in _FOR_EVERYBODY:
            continue
        actions = PROPOSAL_ACTIONS if "{id}" in route.path else ACTIONS
        for action in actions if "{action}" in route.path else ("",):
            yield route.path.replace("{id}", key).replace("{action}", action)


def test_a_viewer_changes_nothing_and_begins_nothing_at_any_address(shown: Site) -> None:
    key = proposed(shown)
    with TestClient(create_app(shown), base_url="http://localhost") as client:
        client.headers["Authorization"] = f"Bearer {token_of('vera')}"
        addresses = list(_writing(shown, key))
        assert len(addresses) > 2 * len(ACTIONS) + 2 * len(PROPOSAL_ACTIONS)
        for address in addresses:
            request = _JSON if address.startswith("/api") else _FORM
            assert client.post(address, **request).status_code == 403, address
    assert stored(shown, key).record.statements == ()
    assert not shown.jobs.all()
    assert {action for _, action in history(shown)} == {"refused"}


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_a_page_of_another_site_makes_no_browser_write_at_any_address(shown: Site, site: str) -> None:
    key = proposed(shown)
    with TestClient(create_app(shown), base_url="http://localhost") as client:
        client.post("/login", data={"token": token_of("anna")}, headers={"Sec-Fetch-Site": "same-origin"})
        client.headers |= {"Sec-Fetch-Site": site, "Origin": "http://evil.localhost"}
        for address in [*_writing(shown, key), "/login/out"]:
            request = _JSON if address.startswith("/api") else _FORM
            assert client.post(address, **request).status_code == 403, address
        assert client.delete("/api/v1/jobs/x").status_code == 403
    assert stored(shown, key).record.statements == ()
    assert not shown.jobs.all()
    assert history(shown) == []
