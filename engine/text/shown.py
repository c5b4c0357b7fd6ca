"""Foreign text as a terminal or a page may show it: without characters that control the screen or hide text."""

from __future__ import annotations

import re

UNSHOWABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""Controls (of terminals too), lone surrogates, invisible characters, and characters that reverse the text after
them."""


def shown(text: object) -> str:
    r"""``text`` with the code in the place of every character that cannot be shown; line breaks and tabs stay.

    >>> shown("\x1b[31mred\u202e")
    '\\x1b[31mred\\u202e'
    """
    return UNSHOWABLE.sub(_spell_out, str(text).replace("\r\n", "\n"))


def _spell_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
