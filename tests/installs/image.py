"""An image is unpacked and run without an engine, as its configuration says."""

import json
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_NAMESPACES: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--net")
_SCRIPT: Final = Path(__file__).with_name("image.sh")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackedImage:
    """The layers of an image, one above the other."""

    root: Path
    #: As the specification of OCI has it.
    config: dict[str, Any]

    @classmethod
    def of(cls, archive: Path, folder: Path) -> "UnpackedImage":
        """That of the *archive* in OCI's layout, unpacked below *folder*; needs root."""
        layout, root = folder / "layout", folder / "root"
        layout.mkdir(parents=True)
        root.mkdir()
        with tarfile.open(archive) as opened:
            opened.extractall(layout)
        (described,) = json.loads((layout / "index.json").read_bytes())["manifests"]
        manifest = _blob(layout, described)
        for layer in manifest["layers"]:
            words = ["tar", "-xz", "--numeric-owner", "--keep-directory-symlink", "-C", str(root), "-f"]
            subprocess.run([*words, str(_path(layout, layer))], check=True)
        return cls(root=root, config=_blob(layout, manifest["config"])["config"])

    def run(self, *words: str, program: str = "") -> subprocess.CompletedProcess[str]:
        """Run its program, or *program*, with *words*: on a read-only root, as its user, with its variables alone."""
        where = [str(_SCRIPT), str(self.root), self.config["User"], self.config["WorkingDir"]]
        entry = [program] if program else self.config["Entrypoint"]
        command = ["/usr/bin/env", "-i", *self.config["Env"], *entry, *words]
        return subprocess.run(
            [*_NAMESPACES, *where, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def _path(layout: Path, described: dict[str, Any]) -> Path:
    return layout / "blobs" / str(described["digest"]).replace(":", "/")


def _blob(layout: Path, described: dict[str, Any]) -> Any:
    return json.loads(_path(layout, described).read_bytes())
