"""Text that looks like other text."""

import pytest

from controller.model.lookalikes import as_it_looks, misleads, revealed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("br\u043eker-1:8080", "br\\u043eker-1:8080"),
        ("acme/\u0430bc", "acme/\\u0430bc"),
        ("broker\u200b-1", "broker\\u200b-1"),
        ("move \u202e2-rekorb", "move \\u202e2-rekorb"),
        ("\u2067\u0634\u2069", "\\u2067\u0634\\u2069"),
        ("a\U000e0041b", "a\\U000e0041b"),
    ],
)
def test_what_misleads_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert revealed(text) == shown
    assert revealed(shown) == shown
    assert misleads(text)


@pytest.mark.parametrize(
    "text",
    [
        "broker-1:8080",
        "caf\u00e9 \u2192 \u201ctoo full\u201d\u2026",
        "\u043f\u0430\u0443\u0437\u0430 \u0441 \u0443\u0442\u0440\u0430",  # Russian: a pause in the morning
        "\u738b\u674e",
        "\U0001f469\u200d\U0001f4bb",  # an emoji of three characters
        "",
    ],
)
def test_text_of_any_script_is_shown_as_it_is(text: str) -> None:
    assert revealed(text) == text


@pytest.mark.parametrize("name", ["b\u043eb", "bob\u200b", "\u0430\u0441\u0435", "\u202ebob"])
def test_a_name_that_looks_like_one_in_plain_letters_misleads(name: str) -> None:
    assert misleads(name)
    assert as_it_looks(name).isascii()


@pytest.mark.parametrize("name", ["bob", "\u00e9mile", "\u0410\u043d\u043d\u0430", "\u738b", "Zo\u00eb Smith"])
def test_a_name_in_letters_of_its_own_does_not(name: str) -> None:
    assert not misleads(name)
