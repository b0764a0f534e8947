"""Describes a certificate in one sentence."""

from collections.abc import Sequence
from typing import Final

from controller.planning.problem import FIXED, MEAN, PIGEONHOLE, PRICES, REMOVAL, Certificate

_WHY: Final = {
    MEAN: "that is the mean usage",
    FIXED: "that is load of one broker that cannot move",
    PIGEONHOLE: "so many large bundles fit nowhere below it",
    REMOVAL: "more bundles than that have to leave brokers above it",
    PRICES: "proved by prices of the linear program",
}


def describe_certificate(certificate: Certificate, resources: Sequence[str]) -> str:
    """What *certificate* says, for a verdict that shows what is reached and the bound."""
    about = f", by {resources[certificate.resource]}" if certificate.kind != PRICES else ""
    return (
        f"{certificate.before:.3g} before, {certificate.reached:.3g} after;"
        f" no plan of at most {certificate.max_moves} moves ends below {certificate.bound:.3g}"
        f" ({certificate.kind}: {_WHY[certificate.kind]}{about}); gap {certificate.gap:.1%}"
    )
