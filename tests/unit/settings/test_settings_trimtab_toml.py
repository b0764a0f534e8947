"""conf/trimtab.toml: its values, and the errors for invalid ones."""

from pathlib import Path

import pytest

from controller.model.errors import SettingsError
from controller.settings.election import ElectionByFile
from controller.settings.known_options import options_table
from controller.settings.log import LogInKafka
from controller.settings.trimtab_toml import Settings, read_settings
from streaming.sources import start_options

CONF = Path(__file__).parents[3] / "conf" / "trimtab.toml"
TEXT = CONF.read_text(encoding="utf-8")
SMALLEST = """
cluster.name = "demo"
log.kind = "folder"
log.folder.path = "log"
election.kind = "file"
election.path = "election"
checkpoint.path = "checkpoint"
"""


def written(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "trimtab.toml"
    path.write_text(text, encoding="utf-8")
    return read_settings(path)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        written(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'trimtab.toml'}: ")
    return message.removeprefix(f"{tmp_path / 'trimtab.toml'}: ")


def test_the_committed_file_fits_the_servers_that_the_scripts_start() -> None:
    settings = read_settings(CONF)
    assert settings.log.kafka is not None
    assert settings.log.kafka.bootstrap == "127.0.0.1:9092"
    assert settings.election.hosts == "127.0.0.1:2181"


def test_the_default_mode_moves_nothing(tmp_path: Path) -> None:
    assert read_settings(CONF).decisions.mode == "dry_run"
    assert written(tmp_path, SMALLEST).decisions.mode == "dry_run"


def test_the_committed_file_spells_out_the_defaults(tmp_path: Path) -> None:
    committed, smallest = read_settings(CONF), written(tmp_path, SMALLEST)
    for section in ("intervals", "journal", "spark", "decisions"):
        assert getattr(committed, section) == getattr(smallest, section)


def test_a_folder_holds_no_arrow(tmp_path: Path) -> None:
    assert read_settings(CONF).log.sweeps == "json"
    assert written(tmp_path, TEXT.replace('sweeps = "json"', 'sweeps = "arrow"')).log.sweeps == "arrow"
    assert "kind is 'folder'" in refusal(tmp_path, SMALLEST + 'log.sweeps = "arrow"')


def test_paths_are_seen_from_the_file(tmp_path: Path) -> None:
    settings = written(tmp_path, SMALLEST)
    assert settings.log.folder is not None
    assert settings.log.folder.path == str(tmp_path / "log")
    assert settings.election.path == str(tmp_path / "election")
    assert settings.checkpoint.path == str(tmp_path / "checkpoint")
    assert settings.cluster.broker_conf == str(tmp_path / "broker.conf")


def test_a_uri_and_a_zookeeper_path_stay_as_they_are(tmp_path: Path) -> None:
    text = TEXT.replace('"../.trimtab/checkpoint"', '"s3a://bucket/checkpoint"').replace(
        "# verdicts_path", "verdicts_path"
    )
    settings = written(tmp_path, text)
    assert settings.checkpoint.path == "s3a://bucket/checkpoint"
    assert settings.election.path == "/trimtab"


def test_a_query_is_given_two_periods_before_it_stands_still(tmp_path: Path) -> None:
    told = refusal(tmp_path, SMALLEST + "intervals.stalled_after_seconds = 119")
    assert "stalled_after_seconds (119) is shorter than two periods (period_seconds = 60): allowed is 120" in told


@pytest.mark.parametrize("uri", ["s3a://bucket/checkpoint", "hdfs:/checkpoint"])
def test_verdicts_lie_in_a_folder_also_where_the_checkpoint_is_a_uri(tmp_path: Path, uri: str) -> None:
    text = SMALLEST.replace('checkpoint.path = "checkpoint"', f'checkpoint.path = "{uri}"')
    assert f"checkpoint.path is the URI '{uri}', so journal.verdicts_path is needed" in refusal(tmp_path, text)
    settings = written(tmp_path, text + 'journal.verdicts_path = "verdicts"')
    assert settings.checkpoint.path == uri
    assert settings.verdicts_folder == str(tmp_path / "verdicts")
    assert "allowed is a folder" in refusal(tmp_path, f'{text}journal.verdicts_path = "{uri}"')
    assert written(tmp_path, SMALLEST).verdicts_folder == str(tmp_path / "checkpoint" / "verdicts")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("shards = 16", "shrads = 32", "intervals.shrads = 32: unknown key; allowed: period_seconds, shards, "),
        ("[spark]", "[sprak]", "sprak: unknown key; allowed: cluster, "),
        ("bootstrap =", "bootstraps =", "log.kafka.bootstrap is missing"),
        ("shards = 16", 'shards = "16"', "intervals.shards = '16': Input should be a valid integer"),
        (
            'admin_url = ["http://127.0.0.1:8080"]',
            "admin_url = 8080",
            "pulsar.admin_url = 8080: Input should be a valid array",
        ),
        (
            'admin_url = ["http://127.0.0.1:8080"]',
            "admin_url = []",
            "pulsar.admin_url = []: Array should have at least 1",
        ),
        ("shards = 16", "shards = true", "intervals.shards = True: Input should be a valid integer"),
        ("shards = 16", "shards = 0", "intervals.shards = 0: Input should be greater than or equal to 1"),
        # The JVM takes it as an int.
        (
            "max_record_bytes = 8_388_608",
            "max_record_bytes = 4294967296",
            "max_record_bytes = 4294967296: Input should be less",
        ),
        ("attempts = 3", "attempts = 101", "executor.attempts = 101: Input should be less than or equal to 100"),
        (
            "max_concurrent = 4",
            "max_concurrent = 10000000000",
            "executor.max_concurrent = 10000000000: Input should be",
        ),
        ("max_concurrent = 16", "max_concurrent = 1001", "collector.max_concurrent = 1001: Input should be less than"),
        (
            "shuffle_partitions = 2",
            "shuffle_partitions = 10001",
            "shuffle_partitions = 10001: Input should be less than",
        ),
        (
            "whole_every_intervals = 60",
            "whole_every_intervals = 1441",
            "journal.whole_every_intervals = 1441: Input should be less than or equal to 1440",
        ),
        ("detail_share = 0.5", "detail_share = nan", "intervals.detail_share = nan: Input should be "),
        ("detail_share = 0.5", "detail_share = 1.5", "intervals.detail_share = 1.5: Input should be less than"),
        ("paused = false", "paused = 0", "decisions.paused = 0: Input should be a valid boolean"),
        (
            'mode = "dry_run"',
            'mode = "on"',
            "decisions.mode = 'on': Input should be 'active', 'approve', 'dry_run' or 'observe'",
        ),
        ('kind = "kafka"', 'kind = "rabbit"', "log.kind = 'rabbit': Input should be 'kafka' or 'pulsar' or 'folder'"),
        ('kind = "kafka"', 'kind = "folder"', "[log] kind is 'folder', so a section [log.folder] is needed"),
        ('kind = "kafka"', "", "log.kind is missing"),
        ('kind = "kafka"', "kind = 3", "log.kind = 3: Input should be 'kafka' or 'pulsar' or 'folder'"),
        ("[log.kafka]", "[log.kafak]", "log.kafak: unknown key; allowed: kind, sweeps, kafka, pulsar, folder"),
        (
            "[log.kafka]",
            "log = 3\n[log.kafka]",
            "log.log = 3: unknown key; allowed: kind, sweeps, kafka, pulsar, folder",
        ),
        ("[log.kafka]", "[log.folder]\nurl = 3\n[log.kafka]", "log.folder.url = 3: unknown key; allowed: path"),
        (
            'kind = "zookeeper"',
            'kind = "none"',
            "election.kind = 'none': Input should be 'zookeeper' or 'log' or 'file'",
        ),
        ('kind = "zookeeper"', 'kind = "zookeeper"\nauth = 3', "election.auth: expected a section or a table"),
        ('hosts = "127.0.0.1:2181"', "", "[election] kind is 'zookeeper', so hosts is needed"),
        ('path = "/trimtab"', 'path = "trimtab"', "[election] path is 'trimtab': a ZooKeeper path begins with /"),
        ("excluded = []", 'excluded = ["tenant"]', "decisions.excluded.0 = 'tenant': 'tenant' is not a namespace"),
        ("excluded = []", 'excluded = ["tenant/pr?d"]', "'pr?d' is not a valid name in Pulsar"),
        ("stale_after_seconds = 300", "stale_after_seconds = 59", "[intervals] stale_after_seconds (59) is shorter"),
        ("seed = 0", "seed =", "not TOML: "),
        # Bytes and times that are made of them would not fit 64 bits.
        ("waiting_mbytes = 512", f"waiting_mbytes = {1 << 50}", "[intervals] waiting_mbytes is too large: allowed is "),
        ("command_ttl_seconds = 300", f"command_ttl_seconds = {10**400}", "[decisions] command_ttl_seconds is too"),
        ("timeout_seconds = 10.0", "timeout_seconds = inf", "[collector] timeout_seconds is too large"),
        ("period_seconds = 60", "period_seconds = 86401", "intervals.period_seconds = 86401: Input should be less"),
    ],
)
def test_a_mistake_is_refused_with_key_value_and_choices(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in TEXT
    assert told in refusal(tmp_path, TEXT.replace(old, new, 1))


def test_sections_of_another_kind_may_stay_in_the_file(tmp_path: Path) -> None:
    log = written(tmp_path, TEXT.replace("[log.kafka]", '[log.folder]\npath = "log"\n[log.kafka]')).log
    assert isinstance(log, LogInKafka)
    election = written(tmp_path, SMALLEST + 'election.hosts = "zk:2181"').election
    assert isinstance(election, ElectionByFile)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            "decisions.command_ttl_seconds = 59",
            "decisions.command_ttl_seconds = 59 is shorter than intervals.period_seconds = 60: allowed is the",
        ),
        (
            "guardrails.window_seconds = 60",
            "guardrails.window_seconds = 60 is not longer than intervals.period_seconds = 60: allowed is more than the",
        ),
        (
            "executor.max_per_second = 0.001",
            "executor.max_per_second = 0.001 let one command take 1060 s, and an executor counts as stalled after"
            " intervals.stalled_after_seconds = 600",
        ),
        ("decisions.executor_timeout_seconds = 600", "let one command take 600 s, and an executor counts as stalled"),
        (
            "collector.deadline_share = 0.0016",
            "collector.deadline_share = 0.0016 of intervals.period_seconds = 60 leaves 0.096 s to query all brokers:"
            " allowed is a share of 0.0017 or more",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused_with_both_values(
    tmp_path: Path, settings: str, told: str
) -> None:
    assert told in refusal(tmp_path, SMALLEST + settings)


def test_settings_at_the_edge_of_what_goes_together_are_taken(tmp_path: Path) -> None:
    edge = (
        "decisions.command_ttl_seconds = 60\nguardrails.window_seconds = 61\ndecisions.executor_timeout_seconds = 599\n"
        "collector.deadline_share = 0.0017"
    )
    assert written(tmp_path, SMALLEST + edge).guardrails.window_seconds == 61


def test_a_text_in_the_place_of_a_section_is_not_shown(tmp_path: Path) -> None:
    assert "log: expected a section or a table, [log]" in refusal(tmp_path, 'log = "secret"')
    assert "secret" not in refusal(tmp_path, 'log = "secret"')


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    text = TEXT.replace("shards = 16", "shards = 0").replace("seed = 0", "seed = -1")
    assert refusal(tmp_path, text).count("trimtab.toml: ") == 1
    assert "decisions.seed = -1" in refusal(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml: No such file"):
        read_settings(tmp_path / "none.toml")


def test_a_clusters_name_holds_nothing_that_would_name_anothers_nodes(tmp_path: Path) -> None:
    for name in ("a/collectors", "", "a b", "a\\n"):
        assert "cluster.name = " in refusal(tmp_path, SMALLEST.replace('"demo"', f'"{name}"'))
    assert written(tmp_path, SMALLEST.replace('"demo"', '"us-west=1:a.b_c"')).cluster.name == "us-west=1:a.b_c"


def test_namespaces_and_bundles_can_be_excluded(tmp_path: Path) -> None:
    names = '["tenant/ns", "prop/cluster/ns", "tenant/ns/0x00000000_0x80000000"]'
    settings = written(tmp_path, TEXT.replace("excluded = []", f"excluded = {names}"))
    assert len(settings.decisions.excluded) == 3


def test_an_excluded_bundle_in_upper_case_is_the_one_that_pulsar_writes_in_lower_case(tmp_path: Path) -> None:
    settings = written(tmp_path, TEXT.replace("excluded = []", 'excluded = ["tenant/ns/0x98000000_0XA0000000"]'))
    assert settings.decisions.excluded == ("tenant/ns/0x98000000_0xa0000000",)


def test_every_key_is_explained() -> None:
    rows = [row for row in options_table() if row.file == "trimtab.toml"]
    assert len(rows) > 30
    assert [row.key for row in rows if not row.meaning] == []


def test_settings_do_not_change() -> None:
    settings = read_settings(CONF)
    with pytest.raises(ValueError, match="frozen"):
        settings.intervals = settings.intervals


@pytest.mark.parametrize(("start_at", "since"), [("90m", 5_400_000), ("4h", 14_400_000), ("7d", 604_800_000)])
def test_a_controller_without_a_checkpoint_begins_so_long_ago(tmp_path: Path, start_at: str, since: int) -> None:
    log = written(tmp_path, TEXT.replace('start_at = "4h"', f'start_at = "{start_at}"')).log.kafka
    assert log is not None
    now_ms = 1_735_689_600_000
    assert log.start_ms(now_ms) == now_ms - since
    assert start_options(log, now_ms)["startingTimestamp"] == str(now_ms - since)


@pytest.mark.parametrize("start_at", ["earliest", "latest"])
def test_a_controller_without_a_checkpoint_begins_at_an_end_of_the_log(tmp_path: Path, start_at: str) -> None:
    log = written(tmp_path, TEXT.replace('start_at = "4h"', f'start_at = "{start_at}"')).log.kafka
    assert log is not None
    assert start_options(log, 0) == {"startingOffsets": start_at}


@pytest.mark.parametrize("start_at", ["", "yesterday", "4", "4 h", "-1h", "h"])
def test_an_invalid_start_at_is_refused_by_name(tmp_path: Path, start_at: str) -> None:
    message = refusal(tmp_path, TEXT.replace('start_at = "4h"', f'start_at = "{start_at}"'))
    assert message == f"log.kafka.start_at = {start_at!r}: allowed: earliest, latest, or a time before now: 90m, 4h, 7d"


def test_a_state_is_not_forgotten_before_collectors_have_written_it_again(tmp_path: Path) -> None:
    message = refusal(tmp_path, SMALLEST + "intervals.state_ttl_intervals = 29")
    assert "intervals.state_ttl_intervals = 29 is too short for collector.state_every = 10" in message
    assert written(tmp_path, SMALLEST + "intervals.state_ttl_intervals = 30").intervals.state_ttl_intervals == 30


@pytest.mark.parametrize(
    ("keys", "minutes"),
    [
        ("", 24 * 60),
        ("log.folder.retention_hours = 48", 48 * 60),
        ("log.folder.retention_hours = 1\ncollector.state_every = 40", 120),
        ("log.folder.retention_hours = 1\ndecisions.command_ttl_seconds = 7200", 120 + 1 + 2),
        ("log.folder.retention_hours = 1\nintervals.bundle_ttl_intervals = 100", 102),
    ],
)
def test_a_log_in_a_folder_keeps_records_for_its_retention_and_no_less_than_is_needed(
    tmp_path: Path, keys: str, minutes: int
) -> None:
    assert written(tmp_path, SMALLEST + keys).folder_kept_ms == minutes * 60_000


ON_LOG = '\n[election]\nkind = "log"\nsession_timeout_seconds = 6\n'


def test_an_election_on_the_log_needs_no_server(tmp_path: Path) -> None:
    before, _, rest = TEXT.partition("\n[election]\n")
    text = before + ON_LOG + rest[rest.index("\n[checkpoint]") :]
    assert written(tmp_path, text).elects_on_log
    with_auth = text.replace(ON_LOG, f"{ON_LOG}auth.user = 'trimtab'\n")
    assert "no [election.auth] and no [election.tls]" in refusal(tmp_path, with_auth)


def test_an_election_on_a_log_in_a_folder_is_refused(tmp_path: Path) -> None:
    before, _, rest = TEXT.partition("\n[election]\n")
    text = before + ON_LOG + rest[rest.index("\n[checkpoint]") :]
    folder = text.replace('kind = "kafka"', 'kind = "folder"\nfolder.path = "log"', 1)
    assert "a folder is one machine's" in refusal(tmp_path, folder)
