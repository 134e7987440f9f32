"""Ground truth that is published encrypted so that models do not memorise it (LiveDRBench).

A row's text is UTF-8, combined by XOR with a key stream, then base64. The key stream is the 32-byte SHA-256 digest of
the row's canary (UTF-8), repeated end to end to the text's length: nothing is hashed twice, there is no salt. This
hides the text from crawlers only.
"""

import base64
import binascii
import hashlib

__all__ = ["CanaryError", "decrypt", "encrypt"]


class CanaryError(ValueError):
    """A ciphertext that its canary does not open."""


def decrypt(ciphertext: str, canary: str) -> str:
    """The text behind a base64 `ciphertext`.

    Raises CanaryError if it is not base64, or not UTF-8 text once decrypted (which reveals most wrong canaries).
    """
    try:
        return _combined(base64.b64decode(ciphertext, validate=True), canary).decode()
    except (binascii.Error, UnicodeError, ValueError) as error:
        raise CanaryError(f"cannot be decrypted with its canary: {error}") from None


def encrypt(text: str, canary: str) -> str:
    """`text` as base64, so that `decrypt` with the same canary gives it back."""
    return base64.b64encode(_combined(text.encode(), canary)).decode()


def _combined(data: bytes, canary: str) -> bytes:
    digest = hashlib.sha256(canary.encode()).digest()
    stream = (digest * (len(data) // len(digest) + 1))[: len(data)]
    return (int.from_bytes(data) ^ int.from_bytes(stream)).to_bytes(len(data))
