"""People who log in with a token, for tests of what they may change."""

from pathlib import Path
from typing import Final

from controller.web.access.tokens import token_hash

#: Name -> role.
PEOPLE: Final = {
    "vera": "viewer",
    "otto": "operator",
    "olga": "operator",
    "anna": "approver",
    "abel": "approver",
    "x" * 101: "operator",
}
#: Lines of [web] of a server on which people change things.
WRITES: Final = ("[web]", "writes = true", "requests_per_second = 10000.0", 'anonymous = "operator"')


def token_of(name: str) -> str:
    """The token of the person *name*."""
    return f"trimtab_{name}"


def tokens_file(folder: Path) -> str:
    """Write the file of tokens to *folder*; the line of [web] that names it."""
    file = folder / "tokens.toml"
    lines = [
        f'[tokens.{name}]\nrole = "{role}"\nsha256 = "{token_hash(token_of(name))}"' for name, role in PEOPLE.items()
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    file.chmod(0o600)
    return f'tokens_file = "{file}"'
