"""What says of a release where it came from, and that nobody changed it: provenance, checksums, signatures.

The provenance is an in-toto statement (v1) with SLSA's predicate (v1).  It has no times, so it is the same bytes each
time that a release is made.
"""

import base64
import hashlib
import json
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from controller.wire.ed25519 import SigningKey

SUMS: Final = "SHA256SUMS"
STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://slsa.dev/provenance/v1"
#: Who made it, and how: trimtab has no public address, so these name no place.
_BUILDER: Final = "urn:trimtab:scripts:release"
_BUILD_TYPE: Final = "urn:trimtab:release:v1"
_PAYLOAD: Final = "application/vnd.in-toto+json"
#: What else decides which bytes a release has.
_LOCKS: Final = ("requirements.lock", "conf/jars.lock")


def sha256(path: Path) -> str:
    """The SHA-256 of the file *path*, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def statement(
    files: Iterable[Path], release: str, commit: str, sources: Path, used: Iterable[Path] = ()
) -> dict[str, Any]:
    """That *files* were made as *release* of the *commit*, which lies in *sources*, and of the files *used*."""
    parts = {name: sources / name for name in _LOCKS} | {path.name: path for path in used}
    others = [{"name": name, "digest": {"sha256": sha256(path)}} for name, path in parts.items()]
    return {
        "_type": STATEMENT,
        "subject": [{"name": path.name, "digest": {"sha256": sha256(path)}} for path in sorted(files)],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD_TYPE,
                "externalParameters": {"version": release, "commit": commit},
                "internalParameters": {
                    "python": platform.python_version(),
                    "setuptools": version("setuptools"),
                    "platform": f"{sys.platform}-{platform.machine()}",
                },
                "resolvedDependencies": [{"name": "trimtab", "digest": {"gitCommit": commit}}, *others],
            },
            "runDetails": {"builder": {"id": _BUILDER}, "metadata": {"invocationId": f"{_BUILDER}:{commit}"}},
        },
    }


def write_checksums(folder: Path) -> Path:
    """Write the checksums of all files of *folder*, as `sha256sum --check` reads them."""
    lines = [f"{sha256(path)}  {path.name}\n" for path in sorted(folder.iterdir()) if path.is_file()]
    made = folder / SUMS
    made.write_text("".join(lines), encoding="utf-8")
    return made


def sign(key: SigningKey, sums: Path, provenance: Path) -> None:
    """Write the signature of *sums*, and the *provenance* in a signed envelope (DSSE), beside them."""
    sums.with_name(f"{sums.name}.sig").write_bytes(base64.b64decode(key.sign(sums.read_bytes())))
    payload = provenance.read_bytes()
    # https://github.com/secure-systems-lab/dsse: what is signed are the type and the content, each behind its length.
    message = b"DSSEv1 %d %s %d %s" % (len(_PAYLOAD), _PAYLOAD.encode(), len(payload), payload)
    envelope = {
        "payloadType": _PAYLOAD,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": key.public_text, "sig": key.sign(message)}],
    }
    provenance.with_suffix(".dsse.json").write_text(json.dumps(envelope) + "\n", encoding="utf-8")
