"""The doctor about approvals: policies that differ, policies that nobody can satisfy, and the controllers' key."""

from pathlib import Path
from typing import Any

import pytest

from controller.adapters.registration import RegisteredProcesses, SeenProcess
from controller.doctor.approvals import controller_key, policy_of_controllers, policy_satisfiable
from controller.doctor.facts import ExecutionFacts, Facts, SigningKeyFacts
from controller.doctor.gather import signing_key_facts
from controller.settings.approvals import ApprovalSettings
from controller.wire.ed25519 import SigningKey
from controller.wire.process import RunningProcess
from tests.doctor import NOW, settings
from tests.proposals import key_of, policy

PAGE = {"page": {"key": key_of("page").public_text}}


def approvals(**section: Any) -> ApprovalSettings:
    return ApprovalSettings.model_validate(section)


def facts(section: ApprovalSettings, **more: Any) -> Facts:
    return Facts(settings=settings().model_copy(update={"approvals": section}), now_ms=NOW, **more)


def controllers(*versions: str) -> ExecutionFacts:
    running = RunningProcess(host="one", process=7, role="controller", version="1", started_at=NOW, ready=True)
    seen = tuple(SeenProcess(process=running.model_copy(update={"policy": each}), seen_ms=NOW) for each in versions)
    return ExecutionFacts(processes=RegisteredProcesses(running=seen))


def test_a_controller_with_another_policy_is_named_with_both() -> None:
    older = policy(["ada"])
    (finding,) = policy_of_controllers(facts(policy(), execution=controllers(policy().version, older.version, "")))
    assert (finding.code, finding.severity) == ("approvals-policy-differs", "error")
    assert policy().version in finding.observed
    assert older.version in finding.observed
    assert "none of one, process 7" in finding.observed
    assert not list(policy_of_controllers(facts(policy(), execution=controllers(policy().version))))
    assert not list(policy_of_controllers(facts(ApprovalSettings(), execution=controllers(""))))


@pytest.mark.parametrize(
    ("section", "why"),
    [
        (policy(["ada"]), "needs 1 approvals by others than its author, and has 0 at most"),
        (policy(["ada", "bob"], required=2), "and has 1 at most"),
        (policy(["ada", "bob", "carol"], required=2), ""),
        (policy(["ada"], required=0), ""),
        (policy(["ada"], required=2, servers=PAGE), ""),
        (policy(["ada"], servers={"page": {**PAGE["page"], "people": ["Ada"]}}), "and has 0 at most"),
        (policy(["ada"], servers={"page": {**PAGE["page"], "people": ["bob"]}}), ""),
        (
            ApprovalSettings.model_validate(
                {"keys": {"ada": {"key": key_of("ada").public_text, "may": ["approve"]}}, "required": 0}
            ),
            "nobody may propose",
        ),
        (ApprovalSettings(), ""),
    ],
)
def test_a_policy_that_nobody_can_satisfy_is_an_error(section: ApprovalSettings, why: str) -> None:
    observed = [each.observed for each in policy_satisfiable(facts(section))]
    assert len(observed) == bool(why)
    assert why in "".join(observed)


def test_the_key_of_the_controllers_is_tried(tmp_path: Path) -> None:
    file = tmp_path / "controller.pem"
    own = {"controller_key_file": str(file)}
    assert "cannot be read" in signing_key_facts(approvals(**own)).problem
    file.write_bytes(b"?")
    file.chmod(0o600)
    assert "PKCS#8" in signing_key_facts(approvals(**own)).problem
    key = SigningKey.new()
    file.write_bytes(key.pem)
    assert signing_key_facts(approvals(**own)) == SigningKeyFacts()
    others = {"controllers": {"one": key_of("page").public_text}}
    assert "is not in approvals.controllers" in signing_key_facts(approvals(**own, **others)).problem
    assert signing_key_facts(approvals(**others)) == SigningKeyFacts()
    file.chmod(0o644)
    assert signing_key_facts(approvals(**own)).is_open


def test_what_is_wrong_with_the_key_is_said() -> None:
    signed = policy(controllers={"one": key_of("page").public_text}, controller_key_file="/key.pem")
    assert not list(controller_key(facts(signed)))
    codes = [each.code for each in controller_key(facts(signed, signing_key=SigningKeyFacts(problem="gone")))]
    assert codes == ["approvals-key-unusable"]
    codes = [each.code for each in controller_key(facts(signed, signing_key=SigningKeyFacts(is_open=True)))]
    assert codes == ["approvals-key-open"]
    unsigned = policy(controllers={"one": key_of("page").public_text})
    assert [each.code for each in controller_key(facts(unsigned))] == ["approvals-no-key"]
    assert [each.code for each in controller_key(facts(policy()))] == ["approvals-commands-unsigned"]
    assert not list(controller_key(facts(ApprovalSettings())))
