"""In whose name this server proposes and approves, and why it cannot."""

from pathlib import Path
from typing import Final

from controller.adapters.approvals.making import Signer
from controller.model.errors import SettingsError
from controller.settings.signing_key import read_signing_key
from controller.web.access.viewer import RefusedError, Viewer
from controller.web.site import ShownCluster, Site
from controller.wire.ed25519 import SigningKey

_KEY: Final = "web.signing_key_file"


def why_no_signature(site: Site, cluster: ShownCluster) -> str:
    """Why controllers of *cluster* would not believe this server; "" where they do, or demand no signature."""
    try:
        _key(site, cluster)
    except SettingsError as error:
        return str(error)
    return ""


def signer_of_viewer(site: Site, cluster: ShownCluster, viewer: Viewer) -> Signer:
    """*viewer* as who says something about proposals of *cluster*.  RefusedError 409: this server cannot sign."""
    policy, name = cluster.settings.approvals, cluster.settings.cluster.name
    try:
        signed = _key(site, cluster)
    except SettingsError as error:
        raise RefusedError(409, "Not possible here", str(error)) from error
    if signed is None:
        return Signer(person=viewer.name, policy=policy, cluster=name)
    server, key = signed
    return Signer(person=viewer.name, policy=policy, cluster=name, key_name=server, key=key)


def _key(site: Site, cluster: ShownCluster) -> tuple[str, SigningKey] | None:
    """The name by which the policy of *cluster* knows this server, and its key; None where nothing is signed."""
    policy = cluster.settings.approvals
    if not policy.demanded:
        return None
    if site.settings.signing_key_file is None:
        raise SettingsError(f"this server has no {_KEY}, so it cannot sign for anybody: sign with `trimtab proposals`")
    key = read_signing_key(Path(site.settings.signing_key_file), _KEY)
    for name, server in policy.servers.items():
        if server.key == key.public_text:
            return name, key
    raise SettingsError(
        f"the public key of {_KEY}, {key.public_text}, is not in [approvals.servers]: controllers would not believe it"
    )
