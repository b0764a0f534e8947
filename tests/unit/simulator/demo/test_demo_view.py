import io
from dataclasses import replace

import numpy as np
from rich.console import Console

from controller.simulator.demo.view import Frame, ImbalanceLine, LiveView, PlainView, screen, view_on

MB = 1e6


def frame(*throughput: float, number: int = 3, commands: tuple[str, ...] = (), history: int = 0) -> Frame:
    return Frame(
        number=number,
        intervals=20,
        interval=1_735_689_600_000 + 120_000,
        brokers=tuple(f"broker-{i}:8080" for i in range(1, len(throughput) + 1)),
        load=np.array(throughput) * MB,
        at_start=ImbalanceLine(max_over_mean=2.0, deviation=50 * MB),
        summary="2 unloads",
        commands=commands,
        history=tuple(f"command {i}" for i in range(history)),
    )


def printed(shown: Frame, *, terminal: bool = False) -> str:
    out = io.StringIO()
    with view_on(Console(file=out, force_terminal=terminal, width=80, color_system=None)) as view:
        view.show(shown)
    return out.getvalue()


def drawn(shown: Frame) -> list[str]:
    console = Console(file=io.StringIO(), width=80, record=True)
    console.print(screen(shown))
    return console.export_text().splitlines()


def test_a_terminal_gets_the_live_screen_and_a_log_gets_lines() -> None:
    assert isinstance(view_on(Console(file=io.StringIO(), force_terminal=True)), LiveView)
    assert isinstance(view_on(Console(file=io.StringIO(), force_terminal=False)), PlainView)


def test_a_log_line_says_the_interval_the_imbalance_and_what_the_controller_said_then_the_commands() -> None:
    assert printed(frame(30, 10, commands=("unload [a] to b", "split c"))).splitlines() == [
        "[ 3/20] 00:02  max/mean 1.50, standard deviation 10.0 MB/s  2 unloads",
        "    unload [a] to b",
        "    split c",
    ]


def test_a_log_says_what_is_waited_for_and_holds_no_control_characters() -> None:
    out = io.StringIO()
    with view_on(Console(file=out, force_terminal=False)) as view:
        view.waiting("Starting Spark")
        view.show(frame(1, 2))
    assert out.getvalue().startswith("Starting Spark\n")
    assert "\x1b" not in out.getvalue()


def test_the_screen_tells_progress_both_imbalances_and_the_newest_commands_within_24_lines() -> None:
    lines = drawn(frame(40, 20, 10, 10, 10, 0, history=30))
    text = "\n".join(lines)
    assert len(lines) <= 24
    assert "interval 3 of 20" in text
    assert "max/mean 2.67" in text
    assert "max/mean 2.00" in text
    assert "2 unloads" in text
    assert "commands (30)" in text
    assert "command 29" in text
    assert "command 21 " not in text


def test_at_80_columns_the_newest_commands_are_wrapped_between_words_and_never_cut() -> None:
    bundle, move = "tenant/namespace-{}/0x00000000_0x10000000", "broker-1 -> broker-6"
    history = tuple(f"unload {bundle.format(n)}  {move}  Overloaded (usage 80 % against 50 %)" for n in range(12))
    out = io.StringIO()
    Console(file=out, width=80, color_system=None).print(screen(replace(frame(40, 10), history=history)))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in out.getvalue()
    for n in range(8, 12):
        assert any(bundle.format(n) in line.split() for line in lines)
    assert bundle.format(7) not in out.getvalue()
    assert sum("Overloaded (usage" in line for line in lines) + sum("against 50 %)" in line for line in lines) >= 4


def test_the_live_screen_leaves_the_last_frame_standing_also_when_it_goes_on_to_wait() -> None:
    assert "interval 3 of 20" in printed(frame(40, 10), terminal=True)
    out = io.StringIO()
    with view_on(Console(file=out, force_terminal=True, width=80, color_system=None)) as view:
        view.show(frame(40, 10))
        out.seek(0)
        out.truncate()
        view.waiting("Stopping ...")
    assert "interval 3 of 20" in out.getvalue()
    assert "Stopping ..." in out.getvalue()
