"""What the node of the shares holds, whoever wrote it."""

import pytest

from controller.adapters.election.collectors import shares_in


def test_shares_are_read_as_they_were_told() -> None:
    assert shares_in(b'{"one":["a:8080","b:8080"],"two":[]}') == {"one": ["a:8080", "b:8080"], "two": []}


@pytest.mark.parametrize(
    "node", [b"", b"no json", b"[]", b"7", b'{"one":"a:8080"}', b'{"one":[1]}', b'{"one":[["a"]]}']
)
def test_a_node_that_holds_anything_else_holds_no_shares(node: bytes) -> None:
    assert shares_in(node) == {}
