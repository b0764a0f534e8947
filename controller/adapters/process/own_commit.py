"""The commit of the source that this process runs."""

import json
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[3]
_SECONDS: Final = 5.0
#: Digits that are shown, as git does.
_DIGITS: Final = 12


def own_commit() -> str:
    """The commit in hexadecimal, of a checkout or of what pip installed from git; "" where neither says.

    Calls git in a checkout, so not for a thread that has to go on.
    """
    return (_of_checkout() if (_ROOT / ".git").exists() else _of_installation())[:_DIGITS]


def _of_checkout() -> str:
    words = ["git", "-C", str(_ROOT), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _of_installation() -> str:
    """PEP 610: pip notes where it installed from."""
    try:
        noted = json.loads(distribution("trimtab").read_text("direct_url.json") or "{}")
        return str(noted.get("vcs_info", {}).get("commit_id", ""))
    except (PackageNotFoundError, ValueError, AttributeError):
        return ""
