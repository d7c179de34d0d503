"""Frames in pipes: 8 bytes of length, then that many bytes. Standard library only."""

from __future__ import annotations

import os
import select
import struct


def write_frame(end: int, data: bytes) -> None:
    """Length and bytes into the pipe ``end``."""
    left = memoryview(struct.pack(">Q", len(data)) + data)
    while left:
        left = left[os.write(end, left) :]


def read_frame(end: int, most: int, patience: float | None = None) -> bytes:
    """One frame. Raises EOFError where the other side is gone, breaks the rules, or says nothing
    for ``patience`` seconds."""
    (length,) = struct.unpack(">Q", _read(end, 8, patience))
    if length > most:
        raise EOFError(f"a frame of {length} bytes")
    return _read(end, length, patience)


def _read(end: int, length: int, patience: float | None) -> bytes:
    data = bytearray()
    while len(data) < length:
        if not select.select([end], [], [], patience)[0]:
            raise EOFError(f"the other process said nothing for {patience:g} s")
        chunk = os.read(end, min(length - len(data), 1 << 20))
        if not chunk:
            raise EOFError("the other process is gone")
        data += chunk
    return bytes(data)


class Passing:
    """A frame on its way from ``jobs`` to a fork. This process sees its bytes in one buffer, which
    is overwritten at the end: nothing of it may be found in a later fork."""

    def __init__(self, jobs: int):
        self._jobs, self._buffer, self._held = jobs, bytearray(1 << 16), memoryview(b"")
        header = _read(jobs, 8, None)
        (self._unread,) = struct.unpack(">Q", header)
        self._held = memoryview(header)

    @property
    def left(self) -> int:
        """Bytes that the fork has not taken yet."""
        return len(self._held) + self._unread

    def some(self, end: int) -> None:
        """Write what the pipe ``end`` takes; nothing more where nobody reads there any longer."""
        if not self._held:
            self._fill()
        try:
            self._held = self._held[os.write(end, self._held) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.drop()

    def drop(self) -> None:
        """Read what nobody takes, so that the next job begins where it should."""
        while self._unread:
            self._fill()
        self._held = memoryview(b"")
        self._buffer[:] = bytes(len(self._buffer))

    def _fill(self) -> None:
        place = memoryview(self._buffer)[: min(self._unread, len(self._buffer))]
        count = os.readv(self._jobs, [place])
        if not count:
            raise EOFError("the other process is gone")
        self._unread -= count
        self._held = place[:count]
