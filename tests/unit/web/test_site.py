"""What surrounds the pages: assets, headers, clusters."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from controller.web.app import create_app
from controller.web.assets import Assets
from controller.web.site import Site
from tests.web_sites import site


def _client(shown: Site) -> TestClient:
    return TestClient(create_app(shown), base_url="http://localhost")


def test_a_page_names_its_cluster_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    answer = _client(site(tmp_path, "east")).get("/")
    assert answer.status_code == 200
    assert "east" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_of_several_clusters_the_address_names_one(tmp_path: Path) -> None:
    client = _client(site(tmp_path, "east", "west"))
    assert "east" in client.get("/").text
    assert "west" in client.get("/?cluster=west").text
    assert client.get("/?cluster=north").status_code == 404


def test_a_site_without_a_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one cluster at least"):
        site(tmp_path)


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_an_asset_is_kept_for_ever_under_the_hash_of_its_content(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.css").write_text("b {}")
    assets = Assets(tmp_path)
    answer = _client(site(tmp_path, "east", assets=assets)).get(
        assets.path("a.css"), headers={"Accept-Encoding": encoding}
    )
    assert answer.text == "b {}"
    assert "immutable" in answer.headers["cache-control"]
    (tmp_path / "a.css").write_text("i {}")
    assert Assets(tmp_path).path("a.css") != assets.path("a.css")


@pytest.mark.parametrize("path", ["../a.py", "%2e%2e/a.py", "..%2fa.py", "/etc/passwd", "a.css%00", "a.py", ""])
def test_only_the_assets_can_be_had_whatever_path_is_asked_for(tmp_path: Path, path: str) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "a.py").write_text("secret")
    (tmp_path / "static" / "a.css").write_text("b {}")
    assets = Assets(tmp_path / "static")
    folder = assets.path("a.css").removesuffix("a.css")
    assert _client(site(tmp_path, "east", assets=assets)).get(folder + path).status_code == 404
