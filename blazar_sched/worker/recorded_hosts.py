# SPDX-License-Identifier: Apache-2.0
"""The record that decisions keep of the hosts they were about.

Ten thousand hosts and hundreds of decisions are millions of pairs, and hardly
a host changes from one decision to the next. So hosts have numbers, a
decision keeps one byte for each host, and the room that a host had left is
kept once for all decisions that saw the host with the same room.
"""

from collections.abc import Iterable

from blazar_sched.ext.host_state import HostState

# The room that a host had left, packed; see worker.decision.
Cell = bytes
# The cells of hosts with consecutive numbers; all but the last chunk have
# CHUNK cells.
Chunk = tuple[Cell, ...]

CHUNK = 128
# The cell of a host whose room is unknown.
EMPTY: Cell = b''


class RecordedHosts:
    """The hosts by number, and the room that each host had left last.

    :ivar identities: the uuid and the name of each host; no uuid if the
        compute service of the host never reported. The list only grows.
    """

    def __init__(self) -> None:
        self.identities: list[tuple[str | None, str]] = []
        self._numbers: dict[str, int] = {}
        self._chunks: list[Chunk] = []

    def numbers(self, host_states: Iterable[HostState]) -> list[int]:
        """Return the numbers of Nova's HostStates; number the new hosts."""
        known = self._numbers.get
        keys = [h.uuid or h.nodename for h in host_states]
        found = [known(key, -1) for key in keys]
        if -1 in found:
            for key, h in zip(keys, host_states, strict=True):
                if key not in self._numbers:
                    self._numbers[key] = len(self.identities)
                    self.identities.append((h.uuid, h.nodename))
            found = [self._numbers[key] for key in keys]
        return found

    def keep(self, numbers: list[int], cells: list[Cell]) -> tuple[Chunk, ...]:
        """Store the room left on some hosts; return the cells of all hosts.

        :param cells: the cells of the hosts with these `numbers`
        """
        chunks = self._chunks
        missing = len(self.identities) - sum(map(len, chunks[-1:]))
        missing -= CHUNK * max(0, len(chunks) - 1)
        if missing:
            flat = [*(chunks.pop() if chunks else ()), *[EMPTY] * missing]
            chunks += [
                tuple(flat[at:at + CHUNK]) for at in range(0, len(flat), CHUNK)
            ]
        changed: dict[int, list[Cell]] = {}
        for number, cell in zip(numbers, cells, strict=True):
            at, within = divmod(number, CHUNK)
            if chunks[at][within] != cell:
                if at not in changed:
                    changed[at] = list(chunks[at])
                changed[at][within] = cell
        for at, new in changed.items():
            chunks[at] = tuple(new)
        return tuple(chunks)


def cell(chunks: tuple[Chunk, ...], number: int) -> Cell:
    """Return the room that a host had left, from the result of `keep`."""
    at, within = divmod(number, CHUNK)
    return chunks[at][within]
