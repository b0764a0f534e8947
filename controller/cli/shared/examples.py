"""Examples for the help of the commands, and for docs/cli.md.  tests/unit/docs runs those that need no server."""

from collections.abc import Mapping
from typing import Final

#: The words that call a command -> lines to copy.
EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "accept-loss": ('trimtab accept-loss --reason "restored the backup of Sunday"',),
    "apply": (
        "trimtab apply plan.json --hash 4f1c0a9be2d7c3aa5b0e96d17f24c8e1 --check",
        "trimtab apply plan.json --hash 4f1c0a9be2d7c3aa5b0e96d17f24c8e1",
    ),
    "collect": ("trimtab collect --conf conf/trimtab.toml", "trimtab collect --dry-run"),
    "execute": ("trimtab execute --conf conf/trimtab.toml",),
    "init": ("trimtab init my-cluster --kafka kafka-1:9092", "trimtab init here --log folder"),
    "mode": ('trimtab mode dry_run --reason "watch it for a day"',),
    "pause": ('trimtab pause --reason "broker upgrade"', 'trimtab pause --for 2h --by alice --reason "bookie upgrade"'),
    "release": ("trimtab release broker-1:8080", "trimtab release --all"),
    "resume": ('trimtab resume --reason "upgrade done"', "trimtab resume --of alice", "trimtab resume --all"),
    "run": ("trimtab run --conf conf/trimtab.toml",),
    "serve": ("trimtab serve", "trimtab serve --conf east/trimtab.toml --conf west/trimtab.toml"),
    "take-over": ("trimtab take-over",),
    "token": ("trimtab token alice --role operator", "trimtab token grafana --for 90d"),
    "hand-back": ('trimtab hand-back --reason "trimtab is dead"', "trimtab hand-back --yes"),
    "stop-all": ('trimtab stop-all --reason "wrong bundles"',),
    "audit": (
        "trimtab audit",
        "trimtab audit tuesday --namespace acme/orders",
        "trimtab audit --from 6h --json",
        "trimtab audit --server https://trimtab.example.org --token-file my.token",
    ),
    "commands tail": (
        "trimtab commands tail",
        "trimtab commands tail --since 1h --limit 20",
        "trimtab commands tail --no-follow --json",
    ),
    "controls": ("trimtab controls", "trimtab controls --limit 5 --json"),
    "doctor": ("trimtab doctor", "trimtab doctor --grants"),
    "explain": (
        "trimtab explain",
        "trimtab explain acme/orders/0x00000000_0x40000000 --all",
        "trimtab explain last --load recording --strategy UniformLoadShedder",
    ),
    "journal": ("trimtab journal --issued", "trimtab journal --reason Budget --since 2h"),
    "lookup": (
        "trimtab lookup persistent://acme/orders/created --bundles 16",
        "trimtab lookup persistent://acme/orders/created --live",
    ),
    "plan": (
        'trimtab plan --budget "20 moves" --to 1.1 -o plan.json',
        "trimtab plan --load recording --frontier",
        "trimtab plan --recording tuesday --at 2025-01-31T14:05:00Z",
        "trimtab plan --drain broker-1:8080 --by 14:05",
        "trimtab plan --move acme/orders/0x00000000_0x40000000=broker-2:8080",
        "trimtab plan --load recording --headroom 30 --add 2",
    ),
    "show-plan": ("trimtab show-plan plan.json",),
    "status": (
        "trimtab status",
        "trimtab status --watch --every 10",
        "trimtab status acme/orders/0x00000000_0x40000000",
    ),
    "bench decisions": ("trimtab bench decisions --bundles 1000 --brokers 10",),
    "compare": ("trimtab compare no-room --strategies ThresholdShedder,AvgShedder --seeds 3",),
    "bench recording": ("trimtab bench recording --intervals 60",),
    "decide": ("trimtab decide --strategy ThresholdShedder --load recording",),
    "demo": ("trimtab demo --intervals 10", "trimtab demo --pulsar 5"),
    "options": ("trimtab options | less",),
    "rebalance": ("trimtab rebalance conf/scenarios/rebalance.toml", "trimtab rebalance --example"),
    "record": ("trimtab record -o tuesday", "trimtab record -o noon --from 11:55 --to 12:30"),
    "replay": ("trimtab replay recording", "trimtab replay recording --fast"),
    "simulate": (
        "trimtab simulate --list",
        "trimtab simulate idle-broker",
        "trimtab simulate idle-broker --show > mine.toml",
    ),
    "strategies check": ("trimtab strategies check ThresholdShedder",),
    "incident make": ("trimtab incident make --around 14:05 -o incident.tar",),
    "incident check": ("trimtab incident check incident.tar",),
    "what-if": (
        "trimtab what-if tuesday --strategy UniformLoadShedder",
        "trimtab what-if tuesday --diff ThresholdShedder conf/broker.recommended.conf",
    ),
    "ticks": ("trimtab ticks recording --into log",),
}
