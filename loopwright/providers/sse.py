"""Server-sent events from the bytes of a response, whatever the network's reads are.

What an event's data means is not decided here.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class ServerEvent:
    """One event: its name (empty if it has none) and its data, lines joined by line feeds."""

    name: str
    data: str


class EventReader:
    """Takes bytes as they come and gives the events that they complete.

    As the standard says: lines end with LF, CR or CRLF, a byte order mark at the beginning and
    comments are skipped, one blank behind the colon is no part of the value. Events without data
    (keep-alives, `retry`, `id`) are none. Unlike the standard's, a last event whose blank line is
    missing is given by `close`; whether the stream was cut is for its reader to find out.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._begun = self._skip_feed = False
        self._name = ""
        self._data: list[str] = []

    def feed(self, read: bytes) -> Iterator[ServerEvent]:
        """The events that are complete with these bytes. Raises UnicodeDecodeError."""
        if self._skip_feed and read:
            self._skip_feed, read = False, read.removeprefix(b"\n")
        if b"\r" in read:
            # The line feed of a CRLF may come with the next read.
            self._skip_feed = read.endswith(b"\r")
            read = read.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self._rest = (
            (self._rest + read).split(b"\n") if b"\n" in read else (self._rest + read,)
        )
        for line in lines:
            if (event := self._take(line)) is not None:
                yield event

    def close(self) -> Iterator[ServerEvent]:
        """The event that the end of the stream left without its blank line, if there is one."""
        for line in (self._rest, b""):
            if (event := self._take(line)) is not None:
                yield event
        self._rest = b""

    def _take(self, line: bytes) -> ServerEvent | None:
        if not self._begun:
            self._begun, line = True, line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            name, data = self._name, self._data
            self._name, self._data = "", []
            return ServerEvent(name, "\n".join(data)) if any(data) else None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value.decode())
        elif field == b"event":
            self._name = value.decode()
        return None


async def events(reads: AsyncIterator[bytes]) -> AsyncIterator[ServerEvent]:
    """The events of a response's bytes. Raises what reading them raises."""
    reader = EventReader()
    async for read in reads:
        for event in reader.feed(read):
            yield event
    for event in reader.close():
        yield event
