"""Where trimtab's own files are: those that it ships, and those that it fetches or makes once.

``controller/conf`` is a link to ``conf`` in a checkout, and a folder in an installed package: one way to find either.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parents[2]
#: The folder conf that trimtab ships.
SHIPPED: Final = (_PACKAGE / "conf").resolve()
#: What a package of a distribution, or an image, brings beside the modules; it need not exist.
SHARED: Final = Path(sys.prefix, "share", "trimtab")
#: Environment variable: the folder for what is fetched or made once, in place of the user's cache.
CACHE: Final = "TRIMTAB_CACHE"
#: Of a checkout alone.
_OF_A_CHECKOUT: Final = ("scripts", "env")


def cache_folder(
    environment: Mapping[str, str] = os.environ, *, root: Path = _PACKAGE.parent, platform: str = sys.platform
) -> Path:
    """Where jars and archives of classes are kept: an absolute path, which need not exist.

    TRIMTAB_CACHE where it is set; ``.jars`` in a checkout, whose *root* has the scripts; else ``trimtab`` in the
    user's cache, by the rule of the *platform*.  Without a home, it is a folder below the current one.
    """
    if environment.get(CACHE):
        return Path(environment[CACHE]).absolute()
    if root.joinpath(*_OF_A_CHECKOUT).is_file():
        return root / ".jars"
    return _users_cache(environment, platform) / "trimtab"


def _users_cache(environment: Mapping[str, str], platform: str) -> Path:
    folder = Path(environment.get("XDG_CACHE_HOME", ""))
    if folder.is_absolute():  # the rule has relative ones ignored
        return folder
    try:
        home = Path(environment["HOME"]) if environment.get("HOME") else Path.home()
    except RuntimeError:  # a container whose user has no entry in /etc/passwd
        return Path(".trimtab", "cache").absolute()
    return home / "Library" / "Caches" if platform == "darwin" else home / ".cache"
