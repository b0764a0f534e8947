"""``trimtab bench pipeline --log``: which options go together."""

from typer.testing import CliRunner

from controller.bench.command import app


def test_a_log_in_pulsar_is_measured_on_a_server_of_its_own() -> None:
    for other in (["--bootstrap", "a:9092"], ["--as-it-arrives"]):
        found = CliRunner().invoke(app, ["pipeline", "--log", "pulsar", *other])
        assert found.exit_code == 2
        assert "--bootstrap or --as-it-arrives" in " ".join(found.output.replace("│", " ").split())
