"""A container image without an engine: layers of plain tar in OCI's layout, which `skopeo` and `podman load` read.

Below the environment of ``environment.py`` are only those packages of Debian 12 that Python, Java and Spark's start
script need: no package manager, no compiler, no Perl.  Nothing is run while it is made, so it needs no root.
"""

import gzip
import hashlib
import json
import platform
import ssl
import struct
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from controller.model.errors import TrimtabError
from tests.supply_chain.archives import pack, tree, write
from tests.supply_chain.environment import HOME, PYTHON
from tests.supply_chain.provenance import sha256

#: libc-bin has the locale C.UTF-8.
_WANTED: Final = (PYTHON, "openjdk-17-jre-headless", "tini", "bash", "coreutils", "ca-certificates", "libc-bin")
#: What those depend on, and only the scripts of packages use: they are not run.
_LEFT_OUT: Final = frozenset(
    {
        "ca-certificates-java",
        "debconf",
        "debianutils",
        "dpkg",
        "java-common",
        "mawk",
        "openssl",
        "tar",
        "util-linux",
        "util-linux-extra",
    }
)
#: Links that Debian makes when it is installed.
_MERGED: Final = {name: f"usr/{name}" for name in ("bin", "lib", "lib64", "sbin")}
_USER: Final = 10001
_LAYERS: Final = ("packages of Debian 12", "packages of Python", "trimtab")
_FILES: Final = {
    "etc/passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\ntrimtab:x:{_USER}:{_USER}::/tmp:/usr/sbin/nologin\n",
    "etc/group": f"root:x:0:\ntrimtab:x:{_USER}:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",  # engines put their own in its place
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_NOT_NEEDED: Final = ("usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian", "usr/share/bug")
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_OWN: Final = ("controller", "streaming", "trimtab-")


def write_image(target: Path, environment: Path, scratch: Path, *, version: str, commit: str, time: int) -> list[Path]:
    """Write the image as an archive of OCI's layout to *target*; returns the packages of Debian that are in it.

    *environment*: a root whose /opt/trimtab ``write_environment`` wrote.
    """
    root, layout = scratch / "debian", scratch / "image"
    debs = _fetched(scratch / "debs")
    _write_debian(root, debs, time)
    home = HOME.relative_to("/")
    found = tree(environment / home.parent, f"{home.parent.as_posix()}/") | {"opt": environment / "opt"}
    own = {name: path for name, path in found.items() if _is_own(name)}
    layers = (tree(root), {name: path for name, path in found.items() if name not in own}, own)
    (layout / "blobs" / "sha256").mkdir(parents=True)
    made = [_layer(layout, files, time) for files in layers]
    config = _config([diff_id for diff_id, _ in made], root, version=version, commit=commit, time=time)
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": _blob(layout, "application/vnd.oci.image.config.v1+json", config),
        "layers": [described for _, described in made],
    }
    named = {"annotations": {"org.opencontainers.image.ref.name": version}}
    described = _blob(layout, "application/vnd.oci.image.manifest.v1+json", manifest) | named
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [described]}), encoding="utf-8")
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}', encoding="utf-8")
    with target.open("wb") as out:
        write(out, tree(layout), time)
    return debs


def _is_own(name: str) -> bool:
    """Whether *name* is a file of trimtab itself: the layer that differs between releases."""
    below = name.partition("/site-packages/")[2]
    return below.startswith(_OWN)


def _fetched(folder: Path) -> list[Path]:
    """The packages of Debian, as apt fetches and verifies them by this host's sources."""
    folder.mkdir()
    status = folder / "status"  # of a machine on which nothing is installed
    status.touch()
    (folder / "partial").mkdir()
    options = {"Dir::State::status": status, "Dir::Cache::archives": folder, "APT::Install-Recommends": "false"}
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    apt = ["apt-get", "-qq", *words, "-o", "Debug::NoLocking=true", "--download-only", "--yes", "install", *_WANTED]
    done = subprocess.run(apt, capture_output=True, text=True)
    if done.returncode:
        raise TrimtabError(f"the packages of Debian could not be fetched; apt-get update may help:\n{done.stderr}")
    return sorted(path for path in folder.glob("*.deb") if path.name.partition("_")[0] not in _LEFT_OUT)


def _write_debian(root: Path, debs: list[Path], time: int) -> None:
    root.mkdir()
    for link, below in _MERGED.items():
        (root / below).mkdir(parents=True)
        (root / link).symlink_to(below)
    status = root / "var" / "lib" / "dpkg" / "status.d"  # where scanners look for the packages of such an image
    status.mkdir(parents=True)
    left_out = [word for path in _NOT_NEEDED for word in ("--exclude", f"./{path}")]
    unpack = ["tar", "-x", "-C", str(root), "--keep-directory-symlink", "--no-same-owner", *left_out]
    for deb in debs:
        files = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(deb)], capture_output=True, check=True).stdout
        subprocess.run(unpack, input=files, check=True)
        control = subprocess.run(["dpkg-deb", "--field", str(deb)], capture_output=True, check=True).stdout
        (status / deb.name.partition("_")[0]).write_bytes(control)
    (root / "usr" / "bin" / "sh").symlink_to("bash")
    for name, text in _FILES.items():
        (root / name).write_text(text, encoding="utf-8")
    for name in ("etc/trimtab", "tmp", "proc", "dev", "sys"):
        (root / name).mkdir(exist_ok=True)
    _write_certificates(root, time)


def _write_certificates(root: Path, time: int) -> None:
    """What the scripts of ca-certificates and of ca-certificates-java would write, by the same certificates."""
    found = {path.stem: path.read_text("ascii") for path in sorted((root / "usr/share/ca-certificates").rglob("*.crt"))}
    folder = root / "etc" / "ssl" / "certs"
    (folder / "java").mkdir(parents=True, exist_ok=True)
    (folder / "ca-certificates.crt").write_text("".join(found.values()), "ascii")
    # Where OpenSSL looks, Python's too: links of Debian's package openssl, which is left out.
    (root / "usr" / "lib" / "ssl").mkdir(parents=True, exist_ok=True)
    for link, target in (("cert.pem", "/etc/ssl/certs/ca-certificates.crt"), ("certs", "/etc/ssl/certs")):
        (root / "usr" / "lib" / "ssl" / link).symlink_to(target)
    trusted = {name.lower(): ssl.PEM_cert_to_DER_cert(text.strip()) for name, text in found.items()}
    (folder / "java" / "cacerts").write_bytes(trust_store(trusted, time))


def trust_store(certificates: Mapping[str, bytes], time: int) -> bytes:
    """*certificates*, alias -> DER, as Java's default trust store: JKS, with the password that it always has.

    PKCS #12 has a salt that no library lets one choose, so it would be other bytes each time.
    """

    def text(value: str) -> bytes:
        return struct.pack(">H", len(value.encode())) + value.encode()

    content = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for alias, der in sorted(certificates.items()):
        content += struct.pack(">I", 2) + text(alias) + struct.pack(">Q", time * 1000)
        content += text("X.509") + struct.pack(">I", len(der)) + der
    # The format's own rule for whether somebody changed it; it keeps no secret.
    return content + hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + content).digest()


def _layer(layout: Path, files: Mapping[str, Path], time: int) -> tuple[str, dict[str, Any]]:
    """Write a layer: the checksum of its content, and its description."""
    made = layout / "layer"
    pack(made, files, time)
    with gzip.open(made) as content:
        plain = hashlib.file_digest(content, "sha256")
    digest, size = sha256(made), made.stat().st_size
    made.rename(layout / "blobs" / "sha256" / digest)
    media = "application/vnd.oci.image.layer.v1.tar+gzip"
    return f"sha256:{plain.hexdigest()}", {"mediaType": media, "digest": f"sha256:{digest}", "size": size}


def _blob(layout: Path, media: str, content: Mapping[str, Any]) -> dict[str, Any]:
    text = json.dumps(content, sort_keys=True).encode()
    digest = hashlib.sha256(text).hexdigest()
    (layout / "blobs" / "sha256" / digest).write_bytes(text)
    return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(text)}


def _config(diff_ids: list[str], root: Path, *, version: str, commit: str, time: int) -> dict[str, Any]:
    created = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    (java,) = (path for path in (root / "usr" / "lib" / "jvm").glob("java-17-*") if not path.is_symlink())
    return {
        "architecture": _MACHINES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "created": created,
        "config": {
            "User": f"{_USER}:{_USER}",
            "Env": list(_variables(java.name)),
            "Entrypoint": ["/usr/bin/tini", "--", "trimtab"],
            "Cmd": ["--help"],
            "WorkingDir": "/etc/trimtab",
            "ExposedPorts": {"9640/tcp": {}},
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "trimtab",
                "org.opencontainers.image.description": "An external load-balance controller for Apache Pulsar",
                "org.opencontainers.image.licenses": "Apache-2.0",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.revision": commit,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": [{"created": created, "created_by": name} for name in _LAYERS],
    }


def _variables(java: str) -> Iterator[str]:
    yield f"PATH={HOME}/bin:/usr/bin"
    yield f"JAVA_HOME=/usr/lib/jvm/{java}"
    yield "LC_ALL=C.UTF-8"
    # The root file system is read-only, and Python's files are compiled.
    yield "PYTHONDONTWRITEBYTECODE=1"
    yield f"TRIMTAB_CACHE={HOME}/cache"
