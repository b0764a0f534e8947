"""Settings to begin with are the template's lines, with a user's values in them."""

import tomllib

import pytest

from controller.cli.init import starter
from controller.model.errors import SettingsError

TEMPLATE = """\
# What this is.
[cluster]
name = "standalone"             # its name
other = 1

[log.kafka]
bootstrap = "a:1"
[log.kafka.client]
# "security.protocol" = "SSL"

# [log.folder]                  # a folder
# path = "here"                 # which

[pulsar]
path = "there"
urls = ["http://a:1"]           # of some
"""


def test_without_values_it_is_the_template() -> None:
    assert starter(TEMPLATE, {}) == TEMPLATE


def test_a_value_takes_the_place_of_the_templates_and_comments_stay() -> None:
    made = starter(TEMPLATE, {("cluster", "name"): "b", ("pulsar", "urls"): ["x", "y"]})
    assert 'name = "b"                      # its name\n' in made
    assert 'urls = ["x", "y"]               # of some\n' in made
    assert made.replace("b", "").count("\n") == TEMPLATE.count("\n")


def test_a_section_that_is_a_comment_is_switched_on_and_others_stay_comments() -> None:
    made = starter(TEMPLATE, {("log.folder", "path"): "mine"}, sections=["log.folder"])
    assert tomllib.loads(made)["log"] == {"kafka": {"bootstrap": "a:1", "client": {}}, "folder": {"path": "mine"}}
    assert tomllib.loads(made)["pulsar"]["path"] == "there"


def test_sections_are_left_out() -> None:
    made = tomllib.loads(starter(TEMPLATE, {}, sections=["log.folder"], left_out=["log.kafka", "log.kafka.client"]))
    assert made["log"] == {"folder": {"path": "here"}}
    assert made["pulsar"]["path"] == "there"


@pytest.mark.parametrize("text", ['"', "\\", '"""', "# no comment", "= 1", "\n[cluster]", "\t", "é", ""])
def test_any_text_is_a_value(text: str) -> None:
    made = tomllib.loads(starter(TEMPLATE, {("cluster", "name"): text, ("pulsar", "urls"): [text, text]}))
    assert made["cluster"]["name"] == text
    assert made["pulsar"]["urls"] == [text, text]
    assert made["cluster"]["other"] == 1


@pytest.mark.parametrize(
    ("values", "shown", "told"),
    [
        ({("cluster", "nam"): "x"}, (), r"\[cluster\] nam"),
        ({("log.folder", "path"): "x"}, (), r"\[log.folder\] path"),
        ({}, ("log.pulsar",), r"\[log.pulsar\]"),
    ],
)
def test_what_the_template_has_no_line_for_is_an_error(
    values: dict[tuple[str, str], str], shown: tuple[str, ...], told: str
) -> None:
    with pytest.raises(SettingsError, match=told):
        starter(TEMPLATE, values, sections=shown)
