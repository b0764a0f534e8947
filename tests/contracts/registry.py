"""The contract of controller.adapters.election.registry."""

import time
from collections.abc import Callable
from typing import TypeAlias

from controller.adapters.election.registry import Registry

#: One more process's, of the same cluster; the fixture closes it at the end.
OpenRegistry: TypeAlias = Callable[[], Registry]

_LONGEST = 100


def written(registry: Registry, longest: int = _LONGEST) -> dict[str, bytes | None]:
    """Entry -> value.  A store may add an ending to the names."""
    return {entry.name.removesuffix(".json"): entry.value for entry in registry.read(longest).entries}


class RegistryContract:
    """Inherited by the tests of each implementation, which give the fixture ``open_registry``."""

    def test_a_cluster_of_no_processes_has_no_entries(self, open_registry: OpenRegistry) -> None:
        assert open_registry().read(_LONGEST) == ((), 0)

    def test_what_a_process_writes_is_read_by_all(self, open_registry: OpenRegistry) -> None:
        one, other, reader = open_registry(), open_registry(), open_registry()
        one.write("b", b"1")
        other.write("a", b"2")
        assert written(reader) == {"a": b"2", "b": b"1"}
        assert [entry.value for entry in one.read(_LONGEST).entries] == [b"2", b"1"]

    def test_an_entry_that_is_renewed_replaces_the_one_before_and_is_younger(self, open_registry: OpenRegistry) -> None:
        registry = open_registry()
        registry.write("a", b"1")
        [before] = registry.read(_LONGEST).entries
        time.sleep(0.02)
        registry.write("a", b"2")
        [after] = registry.read(_LONGEST).entries
        assert after.value == b"2"
        assert after.renewed_ms > before.renewed_ms
        assert abs(after.renewed_ms - time.time() * 1000) < 5_000

    def test_an_entry_ends_when_its_process_closes(self, open_registry: OpenRegistry) -> None:
        one, other = open_registry(), open_registry()
        one.write("a", b"1")
        other.write("b", b"2")
        one.close()
        assert written(other) == {"b": b"2"}

    def test_an_entry_that_is_too_long_has_no_value(self, open_registry: OpenRegistry) -> None:
        registry, other = open_registry(), open_registry()
        registry.write("a", b"x" * (_LONGEST + 1))
        other.write("b", b"x" * _LONGEST)
        assert written(registry) == {"a": None, "b": b"x" * _LONGEST}
