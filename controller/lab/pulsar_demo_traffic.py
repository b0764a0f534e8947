"""Traffic for a cluster that a person tries trimtab on: a namespace on one broker, and what each broker gets of it."""

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from controller.lab.pulsar_server import CLUSTER
from controller.lab.pulsar_stage import Stage, StageAdmin, set_stage
from controller.lab.pulsar_traffic import Traffic

NAMESPACE: Final = "demo/orders"
BUNDLES: Final = 24
_SHOWN_EVERY_SECONDS: Final = 10.0


def send_until_told(admin_url: str, service_url: str, log: Path, say: Callable[[str], None]) -> None:
    """Bring all bundles of a namespace to one broker, then send messages to it until this is interrupted.

    *say* gets the messages/s of each broker now and then; *log*: the file of Pulsar's client.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with closing(StageAdmin([admin_url], cluster=CLUSTER)) as admin:
        brokers = admin.brokers()
        stage = set_stage(admin, NAMESPACE, BUNDLES)
        stage.gather(brokers[0])
        with Traffic(service_url, stage.rates, log):
            say(
                f"sending {sum(stage.rates.values()):.0f} msg/s to {len(stage.topics)} topics of {NAMESPACE}, each in a"
                f" bundle of its own, all on {brokers[0]}; Ctrl-C ends it"
            )
            while True:
                time.sleep(_SHOWN_EVERY_SECONDS)
                say(_shares(stage, brokers))


def _shares(stage: Stage, brokers: tuple[str, ...]) -> str:
    """The messages/s in and out of each broker, as they tell them."""
    rates = stage.msg_rates(brokers)
    return ", ".join(f"{broker} {rate:.0f} msg/s" for broker, rate in zip(brokers, rates, strict=True))
