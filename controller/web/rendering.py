"""Templates: HTML in which every value is escaped, unless a template says otherwise of its own text."""

from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from controller.model.lookalikes import revealed
from controller.web.assets import Assets
from controller.web.views.formats import FILTERS

_FOLDER: Final = Path(__file__).parent / "templates"


def commands_marked(text: str) -> Markup:
    """*text*, escaped, with each `command` in it as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one of them is not closed
        return escape(text)
    pieces = [Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)]
    return Markup("").join(pieces)


def _readable_text(value: object) -> object:
    """*value* of an expression in a template: text in which nothing misleads."""
    return revealed(value) if type(value) is str else value


def template_environment(assets: Assets) -> Environment:
    """Jinja2 with trimtab's filters and ``asset(name)``.  An unknown name in a template is an error, and no text that
    is shown reads as another one; what a form for a write sends unseen is only escaped (``|e``)."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        finalize=_readable_text,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS, commands=commands_marked)
    environment.globals["asset"] = assets.path
    return environment
