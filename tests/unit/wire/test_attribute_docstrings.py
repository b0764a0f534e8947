"""Keys of settings and records are explained by the docstrings below them."""

import inspect

import pytest

from controller.wire.attribute_docstrings import attribute_docstrings


class Base:
    first: int
    """Of the base."""
    second: int
    """Of the base,
    on two lines.
    """
    third: int


class Below(Base):
    first: int
    """Its own."""
    _text = "no attribute with a type"
    """Of nothing."""

    def method(self) -> None:
        """Of no attribute."""

    class Inner:
        fourth: int = 4
        """Of an inner class."""


def test_an_attribute_has_the_docstring_below_it_the_nearest_class_first() -> None:
    assert attribute_docstrings(Base) == {"first": "Of the base.", "second": "Of the base,\non two lines."}
    assert attribute_docstrings(Below) == {"first": "Its own.", "second": "Of the base,\non two lines."}
    assert attribute_docstrings(Below.Inner) == {"fourth": "Of an inner class."}


def test_a_class_without_source_or_of_a_function_explains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Local:
        first: int
        """Not found by its name."""

    assert attribute_docstrings(Local) == {}
    assert attribute_docstrings(int) == {}

    def no_source(_: object) -> str:
        raise OSError("could not get source code")

    module = type(inspect)("without_source")
    monkeypatch.setattr(inspect, "getmodule", lambda _: module)
    monkeypatch.setattr(inspect, "getsource", no_source)
    assert attribute_docstrings(Below) == {}
