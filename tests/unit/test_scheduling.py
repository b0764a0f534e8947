"""How a test run is shared among workers: what belongs together stays together, and what is named is there."""

from pathlib import Path

from tests.scheduling import (
    BY_FUNCTION,
    IN_SPARK,
    LONGEST,
    ON_KAFKA_JOURNAL,
    ON_PULSAR,
    SLOW,
    group_of,
    groups_of,
    rank,
)

ROOT = Path(__file__).parents[2]


def files_with(text: str) -> set[str]:
    folders = (ROOT / "tests" / "integration", ROOT / "tests" / "e2e")
    files = [file for folder in folders for file in folder.glob("test_*.py")]
    return {str(file.relative_to(ROOT)) for file in files if text in file.read_text(encoding="utf-8")}


def test_all_files_that_are_named_exist() -> None:
    named = {*BY_FUNCTION, *IN_SPARK, *ON_KAFKA_JOURNAL, *ON_PULSAR, *SLOW, *(each for each in LONGEST if "/" in each)}
    assert [each for each in sorted(named) if not (ROOT / each).exists()] == []


def test_whatever_uses_the_shared_session_is_in_the_group_of_spark() -> None:
    assert files_with("spark: SparkSession") == IN_SPARK


def test_whatever_uses_the_shared_pulsar_is_in_the_group_of_pulsar() -> None:
    servers_of_its_own = {"tests/e2e/test_secured.py", "tests/integration/test_pulsar_tls.py"}
    assert files_with("pulsar: PulsarCluster") - servers_of_its_own == ON_PULSAR


def test_whatever_writes_a_journal_to_the_shared_kafka_is_in_one_group() -> None:
    """Writers of one cluster's journal fence each other off."""
    of_its_own = {
        "tests/integration/test_secured_kafka.py",  # a server
        "tests/integration/test_controls_in_zookeeper.py",  # a cluster's name
    }
    assert (files_with("KafkaJournal(") | files_with(".journal()")) - of_its_own == ON_KAFKA_JOURNAL


def test_plain_pytest_would_run_nothing_of_the_folders_that_it_does_not_read() -> None:
    files = files_with("")
    assert files_with("\npytestmark = ") == files
    assert files_with("pytest.mark.integration") | files_with("pytest.mark.e2e") == files


def test_a_file_is_a_group_unless_its_functions_are() -> None:
    assert group_of("tests/unit/test_a.py::test_x[1]") == group_of("tests/unit/test_a.py::test_y")
    ending = "tests/e2e/test_ending.py"
    assert group_of(f"{ending}::test_x[a]") == group_of(f"{ending}::test_x[b]") != group_of(f"{ending}::test_y")


def test_the_longest_begin_and_the_rest_keeps_its_order() -> None:
    files = ["tests/unit/b.py", "tests/unit/a.py", "tests/property/p.py", "tests/e2e/test_ending.py", "tests/unit/b.py"]
    assert groups_of([f"{file}::test" for file in files]) == [[3], [2], [0, 4], [1]]
    slow = "tests/unit/test_supply_chain.py"
    assert slow in SLOW
    assert rank("tests/property/p.py") < rank(slow) < rank("tests/unit/a.py")
