"""What servers send back is shown without the secrets that this process has read."""

import base64
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from controller.settings.redaction import Redactor, read_secret, redacted

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
PASSWORD = "p@ss/w\"ö'r+d= <1>\\"


def _redactor(*secrets: str) -> Redactor:
    found = Redactor()
    for number, secret in enumerate(secrets):
        found.register(f"setting {number}", secret)
    return found


SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "repr": repr,
    "JSON": json.dumps,
    "JSON in UTF-8": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON of Gson": lambda text: json.dumps(text).replace("=", "\\u003d").replace("/", "\\/"),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "URL": lambda text: quote(text, safe=""),
    "URL twice": lambda text: quote(quote(text, safe=""), safe=""),
    "form": lambda text: quote(text, safe=" ").replace(" ", "+"),
    "HTML": html.escape,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 behind one byte": lambda text: base64.b64encode(b"u" + text.encode()).decode(),
    "base64url behind two bytes": lambda text: base64.urlsafe_b64encode(b"u:" + text.encode()).decode(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("secret", [TOKEN, PASSWORD])
def test_a_secret_is_removed_however_the_server_spells_it(secret: str, spelling: str) -> None:
    quoted = SPELLINGS[spelling](secret)
    shown = _redactor(secret).redacted(f"401 for {quoted} at broker-1")
    assert re.fullmatch("401 for .*<hidden>.* at broker-1", shown)
    assert not any(quoted[at : at + 8] in shown for at in range(len(quoted) - 8))


@pytest.mark.parametrize("part", [TOKEN[:40], TOKEN[20:60], TOKEN[-20:]])
def test_a_part_of_a_token_is_removed(part: str) -> None:
    assert _redactor(TOKEN).redacted(f"the token {part}... is refused") == "the token <hidden>... is refused"


def test_a_password_that_a_shortened_answer_cuts_off_is_removed() -> None:
    assert _redactor("sehr-geheim").redacted("the password sehr-ge") == "the password <hidden>"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the password abc is wrong", "the password <hidden> is wrong"),
        ('{"password":"abc"}', '{"password":"<hidden>"}'),
        ("abcd and xabc stay, and so do Yabc_", "abcd and xabc stay, and so do Yabc_"),
        ("in base64: YWJj", "in base64: <hidden>"),
    ],
)
def test_a_short_secret_is_removed_where_it_is_a_word(text: str, shown: str) -> None:
    assert _redactor("abc").redacted(text) == shown


def test_logs_keep_words_that_are_short_secrets_by_chance() -> None:
    found = _redactor("pulsar", "a-long-password")
    assert found.redacted("pulsar: a-long-password", shortest=8) == "pulsar: <hidden>"


def test_text_without_secrets_stays_as_it_is() -> None:
    text = "500 Internal Server Error: namespace public/default does not exist"
    assert _redactor(TOKEN, PASSWORD).redacted(text) == Redactor().redacted(text) == text


def test_the_value_before_a_change_of_the_file_stays_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "token"
    for token in ("first-token-of-the-file", "second-token-of-the-file"):
        file.write_text(f"{token}\n")
        read_secret(str(file), "pulsar.token_file")
    shown = redacted("first-token-of-the-file, second-token-of-the-file")
    assert shown == "<hidden>, <hidden>"
