"""Images in messages: what a caller may give, as a content block of langchain-core.

Whether and how a provider is sent images is decided in `providers.wire`.
"""

import base64
import mimetypes
import re
from pathlib import Path
from typing import Any

from loopwright.errors import InputError

_SIGNATURES = {
    rb"\x89PNG\r\n\x1a\n": "image/png",
    rb"\xff\xd8\xff": "image/jpeg",
    rb"GIF8": "image/gif",
    rb"(?s:RIFF....WEBP)": "image/webp",
}


def image_block(image: Any) -> dict[str, Any]:
    """The content block of an image: a Path is read, bytes are taken as they are, a string is a URL
    (`https:` or `data:`), a dict is a block already. Raises InputError.
    """
    if isinstance(image, dict):
        return image
    if isinstance(image, str):
        if not image.startswith(("https://", "http://", "data:")):
            raise InputError(f"an image text must be a URL, not {image[:40]!r}: give files as Path")
        return {"type": "image", "url": image}
    if isinstance(image, Path):
        return _block(_read(image), mimetypes.guess_type(image.name)[0])
    if isinstance(image, bytes):
        return _block(image, None)
    kind = type(image).__name__
    raise InputError(f"an image must be a Path, bytes, a URL or a content block, not {kind}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read image {str(path)!r}: {error.strerror}") from error


def _block(data: bytes, guess: str | None) -> dict[str, Any]:
    found = next((kind for mark, kind in _SIGNATURES.items() if re.match(mark, data)), guess)
    if found is None or not found.startswith("image/"):
        raise InputError("not an image: use PNG, JPEG, GIF or WebP")
    return {"type": "image", "base64": base64.b64encode(data).decode(), "mime_type": found}
