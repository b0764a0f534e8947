"""The files that the pages load: style, script and pictures, under names that hold a hash of their content.

All are read once, when the process starts, and served from memory: no request names a file of this machine.
"""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

_FOLDER: Final = Path(__file__).parent / "static"
#: The kinds of files that are served, and their media types.
_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_HASH_CHARACTERS: Final = 12
#: The content never changes under its name.
_FOR_EVER: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _Asset:
    content: bytes
    compressed: bytes
    media_type: str


class Assets:
    """The files in *folder* and below, by the addresses they are served at."""

    def __init__(self, folder: Path = _FOLDER) -> None:
        self._by_path: dict[str, _Asset] = {}
        self._paths: dict[str, str] = {}
        for file in sorted(folder.rglob("*")):
            media_type = _TYPES.get(file.suffix)
            if media_type is None or not file.is_file():
                continue
            name, content = file.relative_to(folder).as_posix(), file.read_bytes()
            path = f"/static/{hashlib.sha256(content).hexdigest()[:_HASH_CHARACTERS]}/{name}"
            self._paths[name] = path
            self._by_path[path] = _Asset(content, gzip.compress(content, mtime=0), media_type)

    def path(self, name: str) -> str:
        """Where the file *name* is served: /static/<hash>/<name>.  KeyError: there is none."""
        return self._paths[name]

    def serve(self, request: Request) -> Response:
        """Answer a request for one of the files; 404 for any other path."""
        asset = self._by_path.get(request.url.path)
        if asset is None:
            return PlainTextResponse("there is no such file\n", 404)
        headers = {"Cache-Control": _FOR_EVER, "Vary": "Accept-Encoding"}
        if _takes_gzip(request.headers):
            return Response(
                asset.compressed, headers=headers | {"Content-Encoding": "gzip"}, media_type=asset.media_type
            )
        return Response(asset.content, headers=headers, media_type=asset.media_type)


def _takes_gzip(headers: Headers) -> bool:
    offered = headers.get("accept-encoding", "").split(",")
    return any(each.strip().lower() in ("gzip", "*") for each in offered)
