"""Images that a caller may give, and the content block that each becomes."""

import base64
from pathlib import Path
from typing import Any

import pytest

from loopwright.errors import InputError
from loopwright.state.images import image_block

PNG = b"\x89PNG\r\n\x1a\n rest"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_bytes_are_known_by_their_signature(data: bytes, kind: str) -> None:
    assert image_block(data) == {
        "type": "image",
        "base64": base64.b64encode(data).decode(),
        "mime_type": kind,
    }


def test_a_path_is_read_and_its_content_wins_over_its_name(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(PNG)
    block = image_block(tmp_path / "photo.jpg")
    assert (block["mime_type"], base64.b64decode(block["base64"])) == ("image/png", PNG)


def test_a_path_without_a_known_signature_is_taken_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "drawing.bmp").write_bytes(b"BM...")
    assert image_block(tmp_path / "drawing.bmp")["mime_type"] in ("image/bmp", "image/x-ms-bmp")


@pytest.mark.parametrize("url", ["https://host/x.png", "http://host/x", "data:image/png;base64,AA"])
def test_a_url_stays_a_url(url: str) -> None:
    assert image_block(url) == {"type": "image", "url": url}


def test_a_block_is_taken_as_it_is() -> None:
    block = {"type": "image", "url": "https://host/x.png"}
    assert image_block(block) is block


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("photo.png", "give files as Path"),
        (Path("missing.png"), "cannot read image 'missing.png'"),
        (b"plain text", "use PNG, JPEG, GIF or WebP"),
        (b"RIFF\x10\0\0\0WAVEfmt ", "use PNG, JPEG, GIF or WebP"),
        (3, "not int"),
    ],
)
def test_what_is_no_image_is_refused(image: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        image_block(image)


def test_a_file_that_is_no_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InputError):
        image_block(tmp_path / "notes.txt")
