# SPDX-License-Identifier: Apache-2.0
"""What decisions keep of the hosts that they were about.

Ten thousand hosts and hundreds of decisions are millions of pairs, and from
one decision to the next hardly a host changes. So hosts have numbers, a
decision keeps one byte for each of them, and what a host had left is kept
once for all the decisions that saw it so.
"""

from collections.abc import Iterable
from typing import Any

# What a host had left, packed; see worker.explanation.
Cell = bytes
# Of hosts with consecutive numbers; all but the last chunk have CHUNK cells.
Chunk = tuple[Cell, ...]

CHUNK = 128
# The cell of a host of which nothing is known.
EMPTY: Cell = b''


class Hosts:
    """The hosts by number, and what they had left at the last look.

    :ivar identities: the uuid and the name of each; no uuid if its compute
        service never reported. The list only grows.
    """

    def __init__(self) -> None:
        self.identities: list[tuple[str | None, str]] = []
        self._numbers: dict[str, int] = {}
        self._chunks: list[Chunk] = []

    def numbers(self, host_states: Iterable[Any]) -> list[int]:
        """Return the numbers of Nova's HostStates; a new host gets one."""
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

    def keep(
        self, numbers: list[int], cells: list[Cell]
    ) -> tuple[Chunk, ...]:
        """Take over what some hosts have left; return the cells of all hosts.

        :param cells: of the hosts with these `numbers`
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
    """Return what the host with a number had left, as `keep` returned it."""
    at, within = divmod(number, CHUNK)
    return chunks[at][within]
