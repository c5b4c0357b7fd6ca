"""Bearer tokens, compared in a time that does not depend on what was sent."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path

from groundwire.engine import InvalidRequest

from .problems import Refusal
from .settings import Settings

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="groundwire"'}


def read_tokens(settings: Settings) -> tuple[str, ...]:
    """The tokens of the settings and of their file; InvalidRequest if it cannot be read, or if a token is empty."""
    tokens = list(settings.tokens)
    if settings.token_file is not None:
        try:
            lines = Path(settings.token_file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeError) as error:
            raise InvalidRequest(f"token_file {settings.token_file} cannot be read: {error}.") from error
        tokens += [line for line in lines if line.strip()]
        if not tokens:
            raise InvalidRequest(f"token_file {settings.token_file} has no token; write one per line.")
    tokens = [token.strip() for token in tokens]
    if "" in tokens:
        raise InvalidRequest("tokens has an empty token; leave it out.")
    return tuple(tokens)


class Authorizer:
    """Lets requests with one of the tokens in, or all requests where there is no token."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self._digests = tuple(_digest(token) for token in tokens)

    @property
    def needs_token(self) -> bool:
        """Whether there is a token that requests must have."""
        return bool(self._digests)

    def check(self, header: str | None) -> None:
        """Raise Refusal ``unauthorized`` unless the value of the header ``Authorization`` has one of the tokens.

        Digests of equal length are compared, all of them, so that the time says nothing about any token.
        """
        if not self._digests:
            return
        scheme, _, token = (header or "").partition(" ")
        given = _digest(token.strip())
        matches = [hmac.compare_digest(given, digest) for digest in self._digests]
        if scheme.lower() != "bearer" or not any(matches):
            what = "no bearer token" if scheme.lower() != "bearer" else "a bearer token that is not known"
            raise Refusal(
                "unauthorized", f"The request has {what}; send Authorization: Bearer TOKEN.", headers=_CHALLENGE
            )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
