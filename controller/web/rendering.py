"""Templates: HTML in which every value is escaped, unless a template says otherwise of its own text."""

from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from controller.web.assets import Assets
from controller.web.views.formats import FILTERS
from controller.wire.readable import ago, counted, duration, lasting, utc

_FOLDER: Final = Path(__file__).parent / "templates"


def template_environment(assets: Assets) -> Environment:
    """Jinja2 with trimtab's filters and ``asset(name)``.  An unknown name in a template is an error."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {"utc": utc, "ago": ago, "counted": counted, "lasting": lasting, "duration": duration}
    environment.filters.update({**filters, **FILTERS})
    environment.globals["asset"] = assets.path
    return environment
