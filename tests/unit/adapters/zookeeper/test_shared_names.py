"""What contenders agree on by a node, whatever it holds."""

from unittest.mock import Mock

import pytest
from kazoo.exceptions import NodeExistsError

from controller.adapters.zookeeper import leadership
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.leadership import ZooKeeperLeadership


@pytest.mark.parametrize(("stored", "told"), [(b"/there", "/there"), (b"\xff\xfe", "\ufffd\ufffd"), (b"", "")])
def test_a_node_that_holds_no_text_is_another_value_and_no_crash(
    stored: bytes, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Mock()
    client.create_async.return_value.get.side_effect = NodeExistsError()
    client.get_async.return_value.get.return_value = (stored, None)
    monkeypatch.setattr(leadership, "ZooKeeperConnection", lambda *_, **__: Mock(client=client))
    access = ZooKeeperAccess(hosts="127.0.0.1:1")
    elected = ZooKeeperLeadership(access=access, path="/x", cluster="lab", session_timeout_seconds=1.0)
    assert elected.agreement("checkpoint").propose("/here") == told
