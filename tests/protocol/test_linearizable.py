"""The checker of histories finds those that broke others, and lets good ones pass."""

from random import Random

import pytest

from tests.protocol.linearizable import UNKNOWN, Call, Fencing, Highest, Mutex, Register, Sequential, check, with_values

GOOD: dict[str, tuple[Sequential, list[Call]]] = {
    "overlapping reads see the new value and the old one (porcupine's example)": (
        Register(0),
        [
            Call("a", "write", 100, None, 0, 100),
            Call("b", "read", None, 100, 25, 75),
            Call("c", "read", None, 0, 30, 60),
        ],
    ),
    "a write without an answer takes effect late": (
        Register(0),
        [
            Call("a", "write", 1, UNKNOWN, 0, None),
            Call("b", "read", None, 0, 10, 20),
            Call("b", "read", None, 1, 30, 40),
        ],
    ),
    "a write without an answer never takes effect": (
        Register(0),
        [Call("a", "write", 1, UNKNOWN, 0, None), Call("b", "read", None, 0, 10, 20)],
    ),
    "one of two who replace the same value fails": (
        Register(0),
        [
            Call("a", "cas", (0, 1), True, 0, 50),
            Call("b", "cas", (0, 2), False, 10, 40),
            Call("c", "read", None, 1, 60, 70),
        ],
    ),
    "a claim without an answer has taken its number": (
        Fencing(),
        [
            Call("a", "claim", None, 1, 0, 10),
            Call("b", "claim", None, UNKNOWN, 20, None),
            Call("a", "check", None, False, 30, 40),
            Call("a", "claim", None, 3, 50, 60),
            Call("a", "check", None, True, 70, 80),
        ],
    ),
}
BAD: dict[str, tuple[Sequential, list[Call]]] = {
    "a read after a read of the new value sees the old one (porcupine's example)": (
        Register(0),
        [
            Call("a", "write", 200, None, 0, 100),
            Call("b", "read", None, 200, 10, 30),
            Call("c", "read", None, 0, 40, 90),
        ],
    ),
    "a follower answers a read with what it was before the write was acknowledged (Jepsen on etcd 0.4 and Consul)": (
        Register(0),
        [Call("a", "write", 1, None, 0, 10), Call("b", "read", None, 0, 20, 30)],
    ),
    "two clients replace the same value (Jepsen on MongoDB 2.4: the write of the old primary is rolled back)": (
        Register(0),
        [Call("a", "cas", (0, 1), True, 0, 10), Call("b", "cas", (0, 2), True, 20, 30)],
    ),
    "a read sees a write that others see undone (Jepsen on MongoDB 2.6: dirty reads)": (
        Register(0),
        [
            Call("a", "write", 1, UNKNOWN, 0, None),
            Call("b", "read", None, 1, 10, 20),
            Call("c", "read", None, 0, 30, 40),
        ],
    ),
    "two clients hold one lock since a lease ended unseen (Jepsen on etcd 3.4.3; recipes of kazoo and Curator)": (
        Mutex(),
        [Call("a", "acquire", None, True, 0, 10), Call("b", "acquire", None, True, 20, 30)],
    ),
    "a client that stood still goes on as the leader (Kleppmann, How to do distributed locking)": (
        Fencing(),
        [
            Call("a", "claim", None, 33, 0, 10),
            Call("b", "claim", None, 34, 20, 30),
            Call("a", "check", None, True, 40, 50),
        ],
    ),
    "two leaders get the same number": (
        Fencing(),
        [Call("a", "claim", None, 1, 0, 30), Call("b", "claim", None, 1, 10, 40)],
    ),
    "a leader below a number that was raised goes on": (
        Fencing(),
        [
            Call("a", "claim", None, 6, 0, 30),
            Call("ops", "raise", 9, None, 10, 20),
            Call("a", "check", None, True, 40, 50),
            Call("ops", "read", None, 6, 60, 70),
        ],
    ),
    "a number that was raised is lowered": (
        Highest(),
        [
            Call("a", "raise", 7, None, 0, 10),
            Call("b", "raise", 6, None, 0, 30),
            Call("c", "read", None, 6, 40, 50),
        ],
    ),
}


@pytest.mark.parametrize(("spec", "calls"), GOOD.values(), ids=GOOD)
def test_an_order_is_found(spec: Sequential, calls: list[Call]) -> None:
    assert check(spec, calls) is None


@pytest.mark.parametrize(("spec", "calls"), BAD.values(), ids=BAD)
def test_what_has_no_order_is_refused(spec: Sequential, calls: list[Call]) -> None:
    assert check(spec, calls) is not None


def test_the_shortest_beginning_without_an_order_is_shown() -> None:
    calls = [
        Call("a", "write", 1, None, 0, 10),
        Call("b", "read", None, 0, 20, 30),
        Call("a", "write", 2, None, 40, 50),
        Call("b", "read", None, 2, 60, 70),
    ]
    found = check(Register(0), calls)
    assert found is not None
    assert [*found.calls] == calls[:2]
    assert "read" in str(found)


def test_versions_stand_for_the_values_that_were_read_with_them() -> None:
    calls = [
        Call("a", "cas", (-1, "x"), True, 0, 10),
        Call("a", "read", None, ("x", 7), 20, 30),
        Call("a", "cas", (7, "y"), True, 40, 50),
        Call("b", "cas", (7, "z"), True, 60, 70),
    ]
    assert check(Register(), with_values(calls[:3], -1)) is None
    assert check(Register(), with_values(calls, -1)) is not None


def random_history(random: Random, clients: int, calls: int) -> list[Call]:
    """Calls of a register that work, each at one moment between its beginning and its end."""
    held, found, now = 0, list[Call](), 0
    ends = dict.fromkeys(range(clients), 0)
    for _ in range(calls):
        client = random.randrange(clients)
        now = max(now, ends[client]) + random.randint(1, 5)
        began, end = now - random.randint(0, min(4, now - ends[client] - 1)), now + random.randint(0, 9)
        ends[client] = end
        if random.random() < 0.5:
            found.append(Call(str(client), "read", None, held, began, end))
        else:
            new, old = random.randrange(5), random.randrange(5)
            lost = random.random() < 0.2
            result = UNKNOWN if lost else held == old
            found.append(Call(str(client), "cas", (old, new), result, began, None if lost else end))
            held = new if held == old else held
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_random_history_passes_and_with_one_false_result_it_mostly_does_not(seed: int) -> None:
    calls = random_history(Random(seed), clients=4, calls=40)
    assert check(Register(0), calls) is None
    reads = [at for at, call in enumerate(calls) if call.name == "read"]
    false = [[*calls[:at], calls[at]._replace(result=99), *calls[at + 1 :]] for at in reads]
    assert all(check(Register(0), each) is not None for each in false)
