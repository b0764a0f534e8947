"""JSON Web Tokens of an identity provider: checked by signature, issuer, audience and times; groups give the role."""

import json
from pathlib import Path
from typing import Any, Final

import jwt

from controller.model.errors import SettingsError
from controller.settings.small_file import read_tables
from controller.settings.web import OidcSettings, ViewerRole
from controller.web.access.file_reader import FileReader
from controller.web.access.provider import Provider, ProviderError
from controller.web.access.proxy import highest_role
from controller.web.access.viewer import LONGEST_NAME, RefusedError, Viewer, forbidden, unauthorised
from controller.wire.base import printable

#: Asymmetric algorithms alone: a key that is public must not be usable as a shared secret, and "none" is none.
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
#: By so much the clocks of provider and server may differ.
_LEEWAY_SECONDS: Final = 30
_LONGEST_TOKEN: Final = 16 << 10
_MOST_KEYS: Final = 100


class JwtTokens:
    """Checks tokens as *settings* say.  *provider*: where keys come from, unless they are in a file."""

    def __init__(self, settings: OidcSettings, provider: Provider) -> None:
        self._settings, self._provider = settings, provider
        file = settings.jwks_file
        self._file: FileReader[dict[str, Any]] | None = None if file is None else FileReader(file, _read_keys, {})

    def claims(self, token: str) -> dict[str, Any]:
        """What a valid *token* says.  RefusedError: it is not valid, or the keys are not known now."""
        try:
            if len(token) > _LONGEST_TOKEN:
                raise jwt.InvalidTokenError("it is too long")
            header = jwt.get_unverified_header(token)
            key = self._key(header.get("kid"), str(header.get("alg")))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[str(header.get("alg"))],
                audience=self._settings.audience,
                issuer=[self._settings.issuer, f"{self._settings.issuer}/"],
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud"]},
            )
        except ProviderError as error:
            raise RefusedError(503, "Identity provider away", str(error)) from error
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise unauthorised(f"the token of the identity provider is refused: {printable(str(error))}") from None
        return claims

    def viewer(self, claims: dict[str, Any]) -> Viewer:
        """The user that *claims* are about.  RefusedError: he has no name, or no role."""
        name = claims.get(self._settings.name_claim)
        if not isinstance(name, str) or not name.strip():
            raise unauthorised(f"the token has no claim {self._settings.name_claim} with a name")
        name = printable(name.strip())[:LONGEST_NAME]
        groups = claims.get(self._settings.roles_claim, [])
        listed = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
        names = [group for group in listed if isinstance(group, str)]
        role: ViewerRole | None = highest_role(names, self._settings.roles, [self._settings.everybody])
        if role is None:
            raise forbidden(f"{name} has no role: none of the groups of the token is in [web.oidc.roles]")
        return Viewer(name=name, role=role, login="provider")

    def _key(self, kid: object, algorithm: str) -> Any:
        """The key *kid*; keys that are not known yet are asked for, as after the provider has changed them."""
        if algorithm not in _ALGORITHMS:
            raise jwt.InvalidAlgorithmError(f"the algorithm {algorithm} is not allowed")
        for anew in (False, True):
            keys = self._file.value if self._file is not None else self._provider.keys(anew=anew)
            listed = keys.get("keys")
            for each in listed[:_MOST_KEYS] if isinstance(listed, list) else ():
                if isinstance(each, dict) and each.get("kid") == kid and each.get("use", "sig") == "sig":
                    return jwt.PyJWK(each, algorithm=algorithm).key
        raise jwt.InvalidKeyError("it is signed with a key that the provider does not list")


def _read_keys(path: Path) -> dict[str, Any]:
    try:
        keys = json.loads(read_tables(path))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: not JSON") from error
    if not isinstance(keys, dict) or not isinstance(keys.get("keys"), list):
        raise SettingsError(f'{path}: no key set: expected is {{"keys": [...]}}')
    return keys
