"""Who sends a request, and why a request is refused."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

from controller.settings.web import ViewerRole

T = TypeVar("T")

#: How somebody said who he is.
Login: TypeAlias = Literal["token", "provider", "session", "certificate", "proxy", "anonymous"]
#: Characters of a user's name; a longer one is cut.
LONGEST_NAME: Final = 200
#: Name of whoever does not say who he is.
ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """A person or a program that may look."""

    name: str
    role: ViewerRole
    #: "" for a role by anonymous.
    login: Login

    @property
    def is_ambient(self) -> bool:
        """Whether a browser adds the credential by itself, so that another site could use it."""
        return self.login not in ("token", "provider")


class RefusedError(Exception):
    """A request is refused: the answer's status, its title and one sentence for whoever sent it."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.title, self.detail = status, title, detail
        self.headers: dict[str, str] = {}


def unauthorised(detail: str) -> RefusedError:
    """401: the request does not say who sends it, or its credential is wrong."""
    error = RefusedError(401, "Log in", detail)
    error.headers["WWW-Authenticate"] = 'Bearer realm="trimtab"'
    return error


def forbidden(detail: str) -> RefusedError:
    """403: who sends it is known, and may not do this."""
    return RefusedError(403, "Not allowed", detail)


def bad_request(detail: str) -> RefusedError:
    """400: something in the request cannot be."""
    return RefusedError(400, "Bad request", detail)


def checked(ask: Callable[[], T]) -> T:
    """What *ask* returns; its ValueError is about the request, which is refused."""
    try:
        return ask()
    except ValueError as error:
        raise bad_request(str(error)) from error
