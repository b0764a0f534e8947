"""What is wrong with a recording."""

from controller.model.errors import TrimtabError


class RecordingError(TrimtabError):
    """A recording is incomplete, damaged or of another format; the text names the file."""
