"""``trimtab token``: make a token for the page, and the lines for the file of tokens."""

import json
from datetime import UTC, datetime
from typing import Annotated

import typer

from controller.cli.shared.arguments import length_ms, now_ms
from controller.model.names import is_name
from controller.settings.web import ViewerRole
from controller.web.access.tokens import new_token, token_hash


def token(
    name: Annotated[str, typer.Argument(help="Whose it is: a person or a program.", show_default=False)],
    role: Annotated[ViewerRole, typer.Option(help="What it allows.")] = ViewerRole.VIEWER,
    ends_after: Annotated[
        str, typer.Option("--for", help="It ends after this time: 12h, 90d.", show_default="never")
    ] = "",
) -> None:
    """Print a new token to standard error, and to standard output the lines for the file that tokens_file names.

    That file has only a hash; the token itself is shown here, once. Append the lines with >>: a
    page that runs reads the file anew. To take a token back, delete its lines.

    Exit codes: 0 printed; 2 an option is invalid.
    """
    if not is_name(name):
        raise typer.BadParameter(f"{name!r} is not a name: it is empty, too long, or not printable", param_hint="NAME")
    made = new_token()
    lines = [f"[tokens.{json.dumps(name)}]", f'role = "{role}"', f'sha256 = "{token_hash(made)}"']
    if ends_after:
        ends = datetime.fromtimestamp((now_ms() + length_ms(ends_after, of="--for")) // 1000, UTC)
        lines.append(f"expires = {ends.strftime('%Y-%m-%dT%H:%M:%SZ')}")
    typer.echo("\n".join(lines) + "\n")
    typer.echo(f"The token of {name}, shown once: {made}", err=True)
