"""``trimtab plan`` on a recorded load and on the log of a modelled cluster."""

import json
import shutil
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from controller.cli.plan import plan
from controller.cli.texts.planned import print_rightsizing
from controller.model.errors import SettingsError, TrimtabError
from controller.wire.answers.plan import RightsizingAnswer
from controller.wire.plan import parse_plan
from tests.command_runs import runner_of
from tests.modelled_log import ACTIVE, played, settings_in
from tests.records import SAMPLES

pytestmark = pytest.mark.slow

RECORDING = Path(__file__).parents[2] / "data" / "pulsar_recordings" / "broker_restarted"
BACK_OFF = "BackOff: a command about the bundle failed; it rests before the next one"
REPORTS = SAMPLES / "loadbalance_brokers.jsonl"
run = runner_of(plan)


def answer(*arguments: object, code: int = 0) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == code, (result.output, result.exception)
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster with a log and a journal, in which nothing was moved."""
    found = settings_in(tmp_path_factory.mktemp("plan"), more="guardrails.move_undescribed = true")
    played(found, 3, controls=lambda _: replace(ACTIVE, mode="observe"))
    return found


def names(conf: Path) -> list[str]:
    return [each["broker"] for each in answer("--conf", conf)["brokers"]]


def test_a_live_cluster_is_spread_and_the_plan_is_verified_when_it_is_read(conf: Path, tmp_path: Path) -> None:
    said = answer("--conf", conf, "--to", "1.0", "-o", tmp_path / "plan.json")
    found, sha256 = parse_plan((tmp_path / "plan.json").read_bytes())
    assert said["sha256"] == sha256
    assert said["moves"] == len(found.moves) > 0
    assert said["after"] < said["before"]
    assert all(each["highest"] <= 1 for each in said["brokers"])


def test_a_plan_of_a_recording_is_that_of_the_log_in_its_folder(conf: Path) -> None:
    said = answer("--load", conf.parent / "log", "--to", "1.0")
    assert said["moves"] > 0
    assert len(said["brokers"]) == len(names(conf))


def test_a_plan_of_what_record_wrote_is_of_the_cluster_at_its_end_or_at_an_earlier_time() -> None:
    newest = answer("--recording", RECORDING)
    earlier = answer("--recording", RECORDING, "--at", "2026-11-23T04:36:09Z")
    assert [said["cluster"] for said in (newest, earlier)] == ["standalone", "standalone"]
    assert [each["bundlesBefore"] for each in newest["brokers"]] == [6, 6, 7]
    assert [each["bundlesBefore"] for each in earlier["brokers"]] == [12, 0, 5]
    assert newest["interval"] - earlier["interval"] == 37 * 10_000


def test_a_plan_of_what_record_wrote_goes_by_the_settings_in_it(tmp_path: Path) -> None:
    shutil.copytree(RECORDING, tmp_path / "same")
    drained = ("--drain", "127.0.0.1:21348", "--at", "2026-11-23T04:36:09Z")
    # The brokers share a host, whose CPU does not follow their load.
    assert answer("--recording", tmp_path / "same", *drained, code=1)["moves"] < 12
    before = answer("--recording", tmp_path / "same", *drained, "--own", "cpu", code=1)
    assert (before["moves"], before["stays"]) == (12, {"session/orders/0xa8000000_0xb0000000": BACK_OFF})
    manifest = json.loads((tmp_path / "same" / "manifest.json").read_bytes())
    manifest["settings"]["decisions"]["excluded"] = ["session/orders"]
    (tmp_path / "same" / "manifest.json").write_text(json.dumps(manifest))
    after = answer("--recording", tmp_path / "same", *drained, "--own", "cpu", code=1)
    assert (after["moves"], len(after["stays"])) == (0, 13)


def test_budgets_and_windows_of_the_controllers_make_a_plan_longer_and_it_says_so(conf: Path) -> None:
    broker, settings = names(conf)[0], conf.read_text()
    slow, shut = conf.with_name("slow.toml"), conf.with_name("shut.toml")
    slow.write_text(f"{settings}\nguardrails.window.unloads_per_source = 1\n")
    shut.write_text(f"{settings}\nguardrails.interval.connections_per_source = 1\n")
    plain, slowed = answer("--conf", conf, "--drain", broker), answer("--conf", slow, "--drain", broker)
    assert slowed["moves"] > 1
    assert slowed["seconds"] >= (slowed["moves"] - 1) * 3600
    assert plain["seconds"] < 3600
    assert "because of 1 unload an hour off one broker (guardrails.window.unloads_per_source)" in slowed["slowed"]
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    assert answer("--conf", conf, "--drain", broker, "--by", soon)["inTime"] is True
    assert answer("--conf", slow, "--drain", broker, "--by", soon, code=1)["inTime"] is False
    never = answer("--conf", shut, "--drain", broker, code=1)["neverIssued"]
    assert "alone it is more than 1 connection an interval off one broker" in never[0]
    assert "never" in run("--conf", shut, "--drain", broker).stdout


def test_a_budget_of_moves_is_kept(conf: Path) -> None:
    assert answer("--conf", conf, "--to", "1.0", "--budget", "2 moves")["moves"] == 2


def test_the_frontier_tells_how_low_other_numbers_of_moves_bring_the_highest_usage(conf: Path) -> None:
    said = answer("--conf", conf, "--budget", "2 moves", "--to", "1.0", "--frontier")
    levels = said["frontier"]
    by_moves = {each["maxMoves"]: each for each in levels}
    assert by_moves[0]["reached"] == said["before"]
    assert by_moves[2]["reached"] == pytest.approx(said["after"], rel=0.02)
    assert levels[-1]["reached"] < by_moves[2]["reached"]
    assert all(each["bound"] <= each["reached"] and each["moves"] <= each["maxMoves"] for each in levels)


def test_the_frontier_is_printed_with_what_two_more_moves_would_give() -> None:
    said = answer("--load", REPORTS, "--budget", "0 moves", "--frontier")
    by_moves = {each["maxMoves"]: each["timesMean"] for each in said["frontier"]}
    told = run("--load", REPORTS, "--budget", "0 moves", "--frontier").stdout
    more = f"reach {by_moves[2]:.3f}" if by_moves[2] < by_moves[0] * 0.9995 else "not lower that"
    assert f"0 moves reach {by_moves[0]:.3f} times the mean usage; 2 more would {more}" in told
    assert answer("--load", REPORTS)["frontier"] == []


def test_fewer_connections_a_second_take_longer(conf: Path) -> None:
    broker = names(conf)[0]
    fast = answer("--conf", conf, "--drain", broker)
    slow = answer("--conf", conf, "--drain", broker, "--budget", "1 connections/h")
    assert slow["seconds"] > fast["seconds"]
    of_last = sum(move["connections"] for move in slow["steps"][0]["waves"][-1])
    assert slow["seconds"] >= (slow["connections"] - of_last) * 3600 > 0


def test_no_more_connections_reconnect_at_once_than_the_budget_says_in_its_period(conf: Path, tmp_path: Path) -> None:
    broker = names(conf)[0]
    free = answer("--conf", conf, "--drain", broker)
    for budget, most in (("30 connections/min", 30), ("30 connections/s", 30), ("1200 connections/h", 40)):
        file = tmp_path / f"{most}{budget[-1]}.json"
        said = answer("--conf", conf, "--drain", broker, "--budget", budget, "-o", file)
        found, _ = parse_plan(file.read_bytes())
        each = [[int(found.problem.connections[move.bundle]) for move in wave] for wave in found.steps[0].waves]
        assert all(sum(wave) <= most or len(wave) == 1 for wave in each)
        assert said["connectionsAtOnce"] == max(map(sum, each)) < free["connectionsAtOnce"]
        told = run("--conf", conf, "--drain", broker, "--budget", budget).stdout
        assert f"reconnect, at most {said['connectionsAtOnce']} at once" in told


def test_a_drained_broker_ends_empty_with_as_many_moves_as_are_needed(conf: Path) -> None:
    broker = names(conf)[0]
    said = answer("--conf", conf, "--drain", broker)
    drained = next(each for each in said["brokers"] if each["broker"] == broker)
    assert (drained["bundlesAfter"], said["moves"]) == (0, said["fewestMoves"])
    assert drained["bundlesBefore"] == said["moves"] > 0


def test_a_deadline_that_cannot_be_met_is_told_before_anything_begins(conf: Path) -> None:
    broker = names(conf)[0]
    late = run("--conf", conf, "--drain", broker, "--budget", "1 connections/h", "--by", "2999-01-01T00:00:00Z")
    assert late.exit_code == 0
    assert "it can be met" in late.stdout
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))
    result = run("--conf", conf, "--drain", broker, "--by", soon)
    assert result.exit_code == 1
    assert "it cannot be met" in result.stdout


def test_peers_that_may_not_get_full_keep_bundles_where_they_are(conf: Path) -> None:
    result = run("--conf", conf, "--drain", names(conf)[0], "--peers-below", "1")
    assert result.exit_code == 1
    assert "no other broker has room for it below 1%" in result.stdout


def test_a_rolling_restart_states_the_fewest_moves(conf: Path) -> None:
    said = answer("--conf", conf, "--rolling-restart")
    emptied = [each["brokers"][0] for each in said["steps"] if each["task"] == "empty"]
    assert sorted(emptied) == names(conf)
    assert said["moves"] >= said["fewestMoves"]
    assert any("is the minimum" in note for note in said["notes"])


def test_a_zone_needs_failure_domains(conf: Path) -> None:
    result = run("--conf", conf, "--rolling-restart", "--zone")
    assert isinstance(result.exception, TrimtabError)
    assert "failure domain" in str(result.exception)


def test_brokers_needed_and_what_more_of_them_would_change(conf: Path) -> None:
    said = answer("--conf", conf, "--headroom", "20", "--add", "2")
    assert 1 <= said["needed"] <= said["enough"]
    assert said["bound"] <= said["highestAfter"] <= said["highest"]
    assert "2 more" in run("--conf", conf, "--add", "2").stdout


@pytest.mark.parametrize(
    ("needed", "enough", "said"),
    [
        (4, 4, "4 brokers keep 30% free, 2 fewer (by cpu); fewer do not"),
        (6, 7, "at least 6 brokers to keep 30% free, as many as there are (by cpu); 7 are enough, 1 more"),
        (7, None, "at least 7 brokers to keep 30% free, 1 more (by cpu); no number was found on which all"),
        (None, None, "no number of brokers keeps 30% free: a bundle, or a broker's own use, is too large (cpu)"),
    ],
)
def test_what_is_proved_of_a_headroom_and_what_is_shown_are_told_apart(
    needed: int | None, enough: int | None, said: str
) -> None:
    found = RightsizingAnswer(
        cluster="c", interval=0, brokers=6, highest=0.4, mean=0.4, headroom=0.3, needed=needed, enough=enough,
        resource="cpu", added=0, highest_after=0, moves=0, bound=0, notes=[],
    )  # fmt: skip
    out = Console(file=StringIO(), width=200)
    print_rightsizing(out, found)
    assert said in out.file.getvalue()  # type: ignore[attr-defined]


def test_a_broker_that_can_be_removed_is_chosen(conf: Path) -> None:
    said = answer("--conf", conf, "--remove", "1")
    assert said["kind"] == "remove"
    assert [each["bundlesAfter"] for each in said["brokers"]].count(0) >= 1


def test_tables_show_brokers_waves_hash_and_proof() -> None:
    result = run("--load", REPORTS, "--drain", "127.0.0.1:18082", "--own", "cpu")
    assert result.exit_code == 0
    for expected in (
        "empty 127.0.0.1:18082",
        "Whose clients reconnect",
        "hash",
        "no other placement of these bundles gets it below",
        "their msg/s",
    ):
        assert expected in result.stdout


def test_the_last_line_is_what_to_do_next(tmp_path: Path) -> None:
    moves = ("--load", REPORTS, "--drain", "127.0.0.1:18082", "--own", "cpu")
    assert run(*moves).stdout.splitlines()[-1].endswith("-o plan.json: `trimtab apply` reads the file")
    file = tmp_path / "my plan.json"
    (line,) = [line for line in run(*moves, "-o", file).stdout.splitlines() if line.startswith("next")]
    assert line.split(maxsplit=1)[1] == f"trimtab apply '{file}' --hash {json.loads(file.read_bytes())['sha256']}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--drain", "nobody:1"],
            "there is no broker 'nobody:1' in the load; it has 127.0.0.1:18080, 127.0.0.1:18081,",
        ),
        (["--join", "127.0.0.1:1808"], "'127.0.0.1:1808' in the load; did you mean 127.0.0.1:1808"),
        (["--remove", "3"], "the cluster has 3 brokers"),
    ],
)
def test_what_cannot_be_planned_is_told(arguments: list[str], said: str) -> None:
    result = run("--load", REPORTS, *arguments)
    assert isinstance(result.exception, SettingsError)
    assert said in str(result.exception)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--drain", "a:1", "--join", "b:1"],
        ["--zone"],
        ["--budget", "many"],
        ["--budget", "0 connections/min"],
        ["--budget", "9 connections/min", "--budget", "9 connections/s"],
        ["--budget", "9999999 moves"],
        ["--drain", "a:1", "--budget", "3 moves"],
        ["--to", "0.5"],
        ["--to", "nan"],
        ["--by", "yesterday"],
        ["--by", "2001-01-01T00:00:00Z"],
        ["--headroom", "20", "--drain", "a:1"],
        ["--headroom", "100"],
        ["--headroom", "20", "--frontier"],
        ["--drain", "a:1", "--frontier"],
        ["--peers-below", "0"],
        ["--wave-moves", "0"],
        ["--wave-moves", "101"],
        ["--recording", str(RECORDING)],
        ["--at", "14:05"],
    ],
)
def test_options_that_make_no_sense_are_refused(arguments: list[str]) -> None:
    assert run("--load", REPORTS, *arguments).exit_code == 2


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("--load", REPORTS, "-o", tmp_path / "file" / "plan.json")
    assert isinstance(result.exception, SettingsError)


def named(bundle: str, to: int) -> str:
    return f"lab/ns/{bundle}=127.0.0.1:{18080 + to}"


LOW, NEXT = "0x00000000_0x20000000", "0x20000000_0x40000000"


def test_named_moves_are_the_plan_and_no_others_and_the_checker_accepts_them(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    wanted = ("--move", named(LOW, 0), "--move", named(NEXT, 2))
    said = answer("--load", REPORTS, *wanted, "-o", file)
    moves = {move["bundle"]: move["destination"] for step in said["steps"] for wave in step["waves"] for move in wave}
    assert moves == {f"lab/ns/{LOW}": "127.0.0.1:18080", f"lab/ns/{NEXT}": "127.0.0.1:18082"}
    found, sha256 = parse_plan(file.read_bytes())
    assert (len(found.moves), sha256, said["stays"]) == (2, said["sha256"], {})
    assert [each["bundlesAfter"] - each["bundlesBefore"] for each in said["brokers"]] == [0, -1, 1]


def test_named_moves_there_and_back_are_judged_as_better_and_worse_than_the_present(conf: Path) -> None:
    spread = answer("--conf", conf, "--to", "1.0")
    steps = [move for step in spread["steps"] for wave in step["waves"] for move in wave]
    good = [word for move in steps for word in ("--move", f"{move['bundle']}={move['destination']}")]
    assert "better than the present" in " ".join(answer("--conf", conf, *good)["notes"])
    fullest = max(spread["brokers"], key=lambda each: each["before"])["broker"]
    bundles = [move["bundle"] for move in steps if move["source"] != fullest]
    bad = [word for bundle in bundles for word in ("--move", f"{bundle}={fullest}")]
    worse = answer("--conf", conf, *bad, code=1)
    assert "worse than the present" in " ".join(worse["notes"])
    filters = f"filters do not let it go to {fullest}: without "
    assert all(why == f"{fullest} has no room for it" or why.startswith(filters) for why in worse["stays"].values())
    assert len(worse["stays"]) + worse["moves"] == len(bundles)
    assert all(each["highest"] <= 1 for each in worse["brokers"])


def test_a_named_bundle_that_is_excluded_is_refused_with_the_guardrail(conf: Path) -> None:
    spread = answer("--conf", conf, "--to", "1.0")
    move = spread["steps"][0]["waves"][0][0]
    shut = conf.with_name("excluding.toml")
    namespace = move["bundle"].rpartition("/")[0]
    shut.write_text(f'{conf.read_text()}\ndecisions.excluded = ["{namespace}"]\n')
    result = run("--conf", shut, "--move", f"{move['bundle']}={move['destination']}")
    assert isinstance(result.exception, SettingsError)
    assert "must not move: Excluded" in str(result.exception)


@pytest.mark.parametrize(
    ("moves", "said"),
    [
        ([named("0x00000000_0x20000001", 0)], f"did you mean lab/ns/{LOW}?"),
        (["lab/nss/0x00000000_0x20000000=127.0.0.1:18080"], "did you mean a bundle of lab/ns?"),
        (["a=b/c=d/0x00000000_0x20000000=127.0.0.1:18080"], "no bundle 'a=b/c=d/0x00000000_0x20000000'"),
        ([f"lab/ns/{LOW}=127.0.0.1:1808"], "no broker '127.0.0.1:1808' in the load; did you mean 127.0.0.1:1808"),
        ([named(LOW, 1)], "is there already"),
        ([named(LOW, 0), named(LOW, 2)], "named 2 times"),
        ([named(LOW, 0), named(LOW, 0)], "named 2 times"),
    ],
)
def test_named_moves_that_cannot_be_meant_are_refused(moves: list[str], said: str) -> None:
    result = run("--load", REPORTS, *(word for move in moves for word in ("--move", move)))
    assert isinstance(result.exception, SettingsError)
    assert said in str(result.exception)


@pytest.mark.parametrize(
    "more",
    [
        ["--move", "lab/ns/x"],
        ["--move", "=127.0.0.1:18080"],
        ["--move", f"lab/ns/{LOW}="],
        ["--move", named(LOW, 0), "--drain", "127.0.0.1:18080"],
        ["--move", named(LOW, 0), "--frontier"],
        ["--move", named(LOW, 0), "--add", "1"],
        ["--move", named(LOW, 0), "--budget", "1 moves"],
    ],
)
def test_options_that_make_no_sense_with_named_moves_are_refused(more: list[str]) -> None:
    assert run("--load", REPORTS, *more).exit_code == 2


def test_a_plan_of_no_moves_writes_no_file_so_that_the_next_try_is_not_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    even = ["--load", REPORTS, "--to", "100", "-o", file]
    for _ in range(2):
        result = run(*even)
        assert result.exit_code == 0, result.output
        assert "has no moves" in result.stderr
        assert not file.exists()
    assert answer(*even)["file"] == ""


def test_own_is_for_a_balance_and_for_named_moves_as_well() -> None:
    assert run("--load", REPORTS, "--own", "cpu").exit_code == 0
