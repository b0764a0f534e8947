"""Settings of a cluster whose log and election lie in a folder: all that a test needs without servers."""

from pathlib import Path


def write_settings(folder: Path, *lines: str, cluster: str = "demo", broker_conf: str = "") -> Path:
    """Write trimtab.toml, with more *lines*, and broker.conf to *folder*; returns the path of the former."""
    (folder / "broker.conf").write_text(broker_conf, encoding="utf-8")
    path = folder / "trimtab.toml"
    text = (
        f'cluster = {{name = "{cluster}", broker_conf = "broker.conf"}}',
        'log = {kind = "folder", folder.path = "log"}',
        'election = {kind = "file", path = "election"}',
        'checkpoint.path = "checkpoint"',
        *lines,
    )
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path
