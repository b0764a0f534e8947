"""The version of Pulsar in settings, scenarios and options: "auto", which is that of the brokers, or a version."""

from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator

from controller.model.pulsar_version import PulsarVersion, known_version

#: Interval by interval that of the brokers.
AUTO: Final = "auto"


def _validated(text: str) -> str:
    return text if text == AUTO else str(known_version(text))


PulsarSetting: TypeAlias = Annotated[str, AfterValidator(_validated)]


def pinned(setting: str) -> PulsarVersion | None:
    """The version that *setting* names; None: that of the brokers."""
    return None if setting == AUTO else known_version(setting)
