"""A file that a request brings: from the network to the folder of a job, and nowhere else."""

import hashlib
from typing import BinaryIO, Final

from starlette.requests import ClientDisconnect, Request

from controller.web.access.viewer import RefusedError
from controller.web.jobs import Around, Job, JobOrder, refuse_ended
from controller.web.site import Site

#: So many bytes are written at once.
_PIECE: Final = 1 << 20


async def job_with_file(request: Request, site: Site, order: JobOrder, by: str, around: Around | None = None) -> Job:
    """The job that does *order* in the name of *by*, with the body of *request* as its file *order.upload*.

    RequestLimits bounds the size and the time.  RefusedError where too many jobs wait, or the file does not arrive
    whole; then nothing of it is left.
    """
    job = site.jobs.reserve(order, by, around)
    try:
        with (job.folder / order.upload).open("xb") as file:
            sha256, size = await _written(request, site, job, file)
        return site.jobs.start(job, sha256, size)
    except BaseException as error:
        site.jobs.withdraw(job)
        if isinstance(error, ClientDisconnect):
            raise RefusedError(400, "Incomplete", "the file did not arrive whole") from None
        if isinstance(error, OSError):
            raise RefusedError(503, "No room", f"the file cannot be stored: {error.strerror}") from error
        raise


async def _written(request: Request, site: Site, job: Job, file: BinaryIO) -> tuple[str, int]:
    """SHA-256 and bytes of the body of *request*, which *file* has then."""
    digest, size, piece = hashlib.sha256(), 0, bytearray()

    def write(content: bytes) -> None:
        digest.update(content)
        file.write(content)

    async for chunk in request.stream():
        refuse_ended(job)
        size += len(chunk)
        piece += chunk
        if len(piece) >= _PIECE:
            content, piece = bytes(piece), bytearray()
            await site.workers.run(lambda content=content: write(content))  # type: ignore[misc]
    await site.workers.run(lambda: write(bytes(piece)))
    return digest.hexdigest(), size
