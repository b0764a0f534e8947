"""The brokers' true limits, from the file of capacity_overrides."""

from pathlib import Path

import pytest

from controller.model.errors import SettingsError
from controller.settings.capacity import CapacityOverrides, read_capacity_overrides


def overrides(folder: Path, text: str) -> CapacityOverrides:
    path = folder / "capacity.toml"
    path.write_text(text, encoding="utf-8")
    return read_capacity_overrides(path)


def test_units_of_the_file_become_those_of_load_reports(tmp_path: Path) -> None:
    found = overrides(
        tmp_path,
        """[[brokers]]
        match = "a"
        bandwidth_in_mbits = 10000
        bandwidth_out_mbits = 2500.5
        cpu_cores = 16
        memory_mib = 32768
        direct_memory_mib = 65536
        """,
    )
    assert found.of("a:8080") == {
        "bandwidth_in": 10_000_000.0,
        "bandwidth_out": 2_500_500.0,
        "cpu": 1600.0,
        "memory": 32768.0,
        "direct_memory": 65536.0,
    }


def test_a_section_fits_a_name_or_an_expression_for_all_of_a_host_or_an_address(tmp_path: Path) -> None:
    text = """[[brokers]]
        match = 'broker-\\d+'
        cpu_cores = 8
        [[brokers]]
        match = "broker-2:8080"
        cpu_cores = 4
        """
    found = overrides(tmp_path, text)
    assert found.of("broker-1:8080") == {"cpu": 800.0}
    assert found.of("broker-2:8080") == {"cpu": 400.0}
    assert found.of("broker-2:8443") == {"cpu": 800.0}
    assert found.of("my-broker-1:8080") == found.of("broker-1x:8080") == {}


def test_the_last_section_that_fits_counts_resource_by_resource(tmp_path: Path) -> None:
    found = overrides(
        tmp_path, '[[brokers]]\nmatch = ".*"\ncpu_cores = 8\nmemory_mib = 64\n[[brokers]]\nmatch = "a"\ncpu_cores = 2\n'
    )
    assert found.of("a:1") == {"cpu": 200.0, "memory": 64.0}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[brokers]]\nmatch = "("\n', "not a regular expression"),
        ('[[brokers]]\nmatch = "a"\ncpu_cores = 0\n', "cpu_cores"),
        ('[[brokers]]\nmatch = "a"\ncores = 1\n', "brokers.0.cores"),
        ("[[brokers]]\ncpu_cores = 1\n", "brokers.0.match"),
        ("brokers", "not TOML"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        overrides(tmp_path, text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml: No such file"):
        read_capacity_overrides(tmp_path / "none.toml")
