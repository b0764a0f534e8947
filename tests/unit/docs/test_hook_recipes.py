"""The scripts in docs/restarts.md restart the broker of their environment, tried with stubs of their programs."""

import re
from pathlib import Path

import pytest

from controller.adapters.process.hook import run_hook

_PAGE = Path(__file__).parents[3] / "docs" / "restarts.md"
_RECIPES = re.findall(r"### ([^\n]+)\n.*?```sh\n(#!/bin/sh\n.*?)```", _PAGE.read_text(encoding="utf-8"), re.DOTALL)
_WORDS = {
    "systemd": "ssh -o BatchMode=yes -- broker-1.pulsar.svc sudo systemctl restart pulsar-broker.service",
    "Kubernetes": "kubectl --namespace pulsar delete pod broker-1 --wait --timeout=9m",
    "Ansible": "ansible-playbook --inventory inventory.ini --limit broker-1.pulsar.svc restart-broker.yml",
}


@pytest.mark.parametrize(("name", "script"), _RECIPES, ids=[name for name, _ in _RECIPES])
def test_a_recipe_restarts_the_broker_of_its_environment_and_fails_where_its_program_does(
    name: str, script: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = _WORDS[name]
    for file, text in ((words.split()[0], '#!/bin/sh\necho "${0##*/} $*"\nexit 4\n'), ("restart-broker", script)):
        (tmp_path / file).write_text(text, encoding="utf-8")
        (tmp_path / file).chmod(0o755)
    variables = {"BROKER": "broker-1.pulsar.svc:8080", "BROKER_HOST": "broker-1.pulsar.svc", "PATH": str(tmp_path)}
    assert run_hook([str(tmp_path / "restart-broker")], variables, 20.0, lambda: None) == "ended with exit code 4"
    assert capfd.readouterr().err == f"{words}\n"


def test_there_is_a_recipe_for_each_of_them() -> None:
    assert {name for name, _ in _RECIPES} == _WORDS.keys()
