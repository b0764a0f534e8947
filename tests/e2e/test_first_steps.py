"""What docs/first_steps.md tells a new user to type: it ends with bundles that trimtab has moved."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.adapters.network.waiting import wait_for
from controller.lab.servers import free_port
from tests.pages import DOCS, ROOT, blocks

pytestmark = [pytest.mark.e2e, pytest.mark.extended]

_PATIENCE_SECONDS = 300
#: After the blocks in which trimtab has begun to decide, and to act: what the reader waits for.
_DECIDED = 'until trimtab journal --json | grep -q \'"action": *"unload"\'; do sleep 1; done'
_MOVED = 'until trimtab status --json | grep -q \'"status": *"done"\'; do sleep 1; done'


def commands_of_page() -> list[str]:
    """The blocks of commands of the page, each as a text of lines."""
    return ["\n".join(block.lines) for block in blocks(DOCS / "first_steps.md")]


def elsewhere(text: str, folder: Path, port: int) -> str:
    """*text* with files and ports of the test's own: a reader's cluster may run in this checkout."""
    start = f"scripts/pulsar start --dir {folder}/pulsar --port {port} | tee {folder}/started"
    # What was printed says where the servers listen.
    addresses = f"$(grep -o -- '--admin-url .*' {folder}/started)"
    urls = f"$(grep -o -- '--admin-url .* --service-url [^ ]*' {folder}/started)"
    told = {
        "scripts/pulsar start": start,
        "scripts/pulsar stop": f"scripts/pulsar stop --dir {folder}/pulsar",
        "scripts/traffic >": f"scripts/traffic --dir {folder}/pulsar {urls} >",
        "trimtab init --log pulsar --period 20": f"trimtab init --log pulsar --period 20 {addresses}",
        ".trimtab/first": f"{folder}/first",
        "../../.servers/traffic.log": f"{folder}/traffic.log",
        ".servers/traffic.log": f"{folder}/traffic.log",
        "../../conf/": f"{ROOT}/conf/",
        "cd ../..": f"cd {ROOT}",
        "127.0.0.1:8080": f"127.0.0.1:{port}",
    }
    for words, others in told.items():
        text = text.replace(words, others)
    return text


@pytest.fixture
def cleared(tmp_path: Path) -> Iterator[None]:
    """Nothing runs after the test, also where it failed half-way."""
    yield
    subprocess.run(["scripts/pulsar", "stop", "--dir", str(tmp_path / "pulsar")], cwd=ROOT, check=False)


@pytest.mark.usefixtures("cleared")
def test_the_commands_of_the_page_end_with_bundles_on_other_brokers(tmp_path: Path) -> None:
    begin, look, act, moved, end = commands_of_page()
    commands = "\n".join([begin, _DECIDED, look, act, _MOVED, moved, end, "wait", "echo all done"])
    port = free_port()
    script = tmp_path / "page.sh"
    script.write_text(
        f"set -em\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{elsewhere(commands, tmp_path, port)}\n", "utf-8"
    )
    with (tmp_path / "shown").open("w", encoding="utf-8") as shown:
        shell = subprocess.Popen(["bash", str(script)], cwd=ROOT, stdout=shown, stderr=shown, stdin=subprocess.DEVNULL)
        try:
            wait_for(lambda: shell.poll() is not None, _PATIENCE_SECONDS, every=0.5)
        finally:
            shell.terminate()
            shell.wait(30)
    text = (tmp_path / "shown").read_text(encoding="utf-8")
    assert shell.returncode == 0, text
    assert "\nall done\n" in text, text
    assert re.search(r"0 errors, \d warnings, \d+ fine", text), text
    assert f"127.0.0.1:{port} -> " in text, text
    assert "dry run of unload demo/orders/" in text, text
    # At 80 columns the brokers stand on a line of their own.
    assert re.search(r"\n  \S+Z  unload demo/orders/\S+\s+\S+ -> \S+: done", text), text
    assert not (set(os.listdir(tmp_path / "first")) & {"metastore_db"})
