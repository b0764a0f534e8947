"""Where trimtab's own files lie, and where it keeps what it fetches."""

from pathlib import Path

import pytest

from controller.adapters.disk import jars
from controller.adapters.disk.places import SHIPPED, cache_folder
from controller.model.errors import TrimtabError

ROOT = Path(__file__).parents[4]


def test_what_comes_with_trimtab_is_the_folder_conf() -> None:
    assert ROOT / "conf" == SHIPPED
    assert jars.LOCK == ROOT / "conf" / "jars.lock"


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({"HOME": "/home/anna"}, "linux", "/home/anna/.cache/trimtab"),
        ({"HOME": "/home/anna", "XDG_CACHE_HOME": "/big"}, "linux", "/big/trimtab"),
        ({"HOME": "/home/anna", "XDG_CACHE_HOME": "relative"}, "linux", "/home/anna/.cache/trimtab"),
        ({"HOME": "/home/anna", "XDG_CACHE_HOME": ""}, "linux", "/home/anna/.cache/trimtab"),
        ({"HOME": "/Users/anna"}, "darwin", "/Users/anna/Library/Caches/trimtab"),
        ({"HOME": "/home/anna", "XDG_CACHE_HOME": "/big", "TRIMTAB_CACHE": "/opt/jars"}, "linux", "/opt/jars"),
    ],
)
def test_an_installed_package_keeps_jars_in_the_users_cache(
    environment: dict[str, str], platform: str, expected: str, tmp_path: Path
) -> None:
    assert cache_folder(environment, root=tmp_path, platform=platform) == Path(expected)


def test_a_checkout_keeps_jars_in_a_folder_of_its_own() -> None:
    assert cache_folder({"HOME": "/home/anna"}, root=ROOT) == ROOT / ".jars"


def test_a_user_without_a_home_has_the_cache_below_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.chdir(tmp_path)
    assert cache_folder({}, root=tmp_path, platform="linux") == tmp_path / ".trimtab" / "cache" / "trimtab"


def test_a_cache_that_cannot_be_written_to_is_an_error_that_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, and no folder")
    with pytest.raises(TrimtabError, match=r"cannot be written to .*cache/connector: .*Set TRIMTAB_CACHE to a folder"):
        jars.fetch("connector", tmp_path / "cache")
