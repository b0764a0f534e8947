"""``trimtab show-plan``: the content of a plan's file, for the person who approves it."""

from pathlib import Path
from typing import Annotated

import typer

from controller.adapters.long_work import long_work
from controller.cli.shared.answers import show
from controller.cli.shared.console import DEFAULT_CONF, Conf, json_option
from controller.cli.texts.planned import print_plan
from controller.offline.plans.answer import plan_answer
from controller.offline.plans.plan_file import described_plan, read_plan, refuse_other_cluster
from controller.settings.trimtab_toml import read_settings


def show_plan(
    file: Annotated[
        Path, typer.Argument(metavar="PLAN", help="The file that `trimtab plan` wrote.", show_default=False)
    ],
    conf: Conf = DEFAULT_CONF,
    as_json: Annotated[bool, json_option("answer.plan")] = False,
) -> None:
    """Print what is in a plan's file, and its hash.  The file is checked, but not against the cluster as it is now.

    The time that the plan takes follows from the budgets and windows of the settings.

    Exit codes: 0 printed; 2 the file is no plan, or not one of this cluster.
    """
    with long_work("checking the plan"):
        plan, _ = read_plan(file)
        settings = read_settings(conf)
        refuse_other_cluster(plan, settings, conf)
        planned = described_plan(plan, settings)
    # Of JSON, file says where the plan was written: nowhere.  A person gets the command that applies this file.
    answer = plan_answer(planned, file="" if as_json else str(file), now_ms=0, deadline_ms=None)
    show(answer, lambda out: print_plan(out, answer, conf), as_json=as_json)
