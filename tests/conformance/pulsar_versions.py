"""The options by which trimtab decides as a release of Pulsar does: its own table of what differs between them."""

import json
from typing import Any

from controller.model.pulsar_version import PulsarVersion, other_defaults


def options_of(release: str) -> dict[str, Any]:
    """Options of broker.conf with other values than trimtab's defaults, but for strategies, which cases name."""
    version = PulsarVersion.parse(release)
    assert version is not None
    defaults = other_defaults(version).items()
    return {name: _value(text) for name, text in defaults if not name.endswith("Strategy")}


def _value(text: str) -> Any:
    """A number or a truth value; else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
