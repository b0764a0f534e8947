"""The real capacity of brokers that report wrong limits: wrong NIC speed, virtual machines, mixed hardware.

A small TOML file.  Where several sections match a broker, the last one counts, for each resource alone:

    [[brokers]]
    match = "broker-1[0-9]"            # host, or host:port: a name, or a regular expression for all of it
    bandwidth_in_mbits = 10000         # Mbit/s
    bandwidth_out_mbits = 10000
    cpu_cores = 16
    memory_mib = 32768
    direct_memory_mib = 65536
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from controller.model.errors import SettingsError
from controller.settings.small_file import read_tables


def _compiles(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return text


_Positive: TypeAlias = Annotated[float, Field(gt=0, le=1e12, strict=True)]


class CapacityOverride(BaseModel):
    """A section of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    match: Annotated[str, Field(min_length=1), AfterValidator(_compiles)]
    bandwidth_in_mbits: _Positive | None = None
    bandwidth_out_mbits: _Positive | None = None
    cpu_cores: _Positive | None = None
    memory_mib: _Positive | None = None
    direct_memory_mib: _Positive | None = None

    def fits(self, broker: str) -> bool:
        """Whether this section matches *broker*, host:port."""
        host = broker.rpartition(":")[0]
        return any(name == self.match or re.fullmatch(self.match, name) for name in (broker, host))


class CapacityOverrides(BaseModel):
    """The whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    brokers: Sequence[CapacityOverride] = ()

    def of(self, broker: str) -> dict[str, float]:
        """Resource -> capacity of *broker*, in the unit of its load report; without resources that are not given."""
        known: dict[str, float] = {}
        for override in self.brokers:
            if override.fits(broker):
                known |= override.model_dump(exclude={"match"}, exclude_none=True)
        return {_RESOURCES[name][0]: value * _RESOURCES[name][1] for name, value in known.items()}


#: Key -> resource and factor from the key's unit to the resource's: a core is 100 percent, a Mbit 1000 kbit.
_RESOURCES: Final[Mapping[str, tuple[str, float]]] = {
    "cpu_cores": ("cpu", 100.0),
    "memory_mib": ("memory", 1.0),
    "direct_memory_mib": ("direct_memory", 1.0),
    "bandwidth_in_mbits": ("bandwidth_in", 1000.0),
    "bandwidth_out_mbits": ("bandwidth_out", 1000.0),
}


def read_capacity_overrides(path: Path) -> CapacityOverrides:
    """The file *path*, or SettingsError naming file, key and what is wrong."""
    try:
        return CapacityOverrides.model_validate(tomllib.loads(read_tables(path).decode()))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise SettingsError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:  # also for numbers too long or nesting too deep
        raise SettingsError(f"{path}: not TOML: {error}") from error
