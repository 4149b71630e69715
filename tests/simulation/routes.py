# SPDX-License-Identifier: Apache-2.0
"""Where a server could go, searched in all ways, by the room of `occupancy`.

Nothing here is the project's own planning or accounting.
"""

from collections.abc import Callable
import dataclasses

from blazar_sched.domain import window
from tests.simulation import occupancy


@dataclasses.dataclass(frozen=True)
class Search:
    """The search for a path of a server.

    :ivar look: `least` or `most`: what is counted as in use of a host
    :ivar movable: how the server is moved
    """

    world: object
    uuid: str
    amounts: dict
    end: int
    look: Callable
    movable: str = 'live'

    def is_there(self, node, now, least=1):
        """Tell whether a path begins on a node.

        :param least: the least seconds for which the node must have room
        """
        until = self.until(node, now)
        if until >= self.end:
            return True
        return until - now >= max(
            least, self.world.setting.lead_of(self.movable)
        ) and self._goes_on(node, until, self.world.setting.moves)

    def until(self, node, start):
        """Return until when a node has room for the server."""
        sizes = self.world.cloud.sizes[node]
        for at, taken in self.look(self, node, start):
            if any(
                taken[c] + n > sizes[c].capacity
                for c, n in self.amounts.items()
            ):
                return at
        return window.FOREVER

    def _goes_on(self, node, until, moves):
        if not moves:
            return False
        start = until - self.world.setting.lead_of(self.movable)
        for host in self.world.ledger.hosts():
            other = host.hypervisor_hostname
            if other == node or not host.takes_relocated:
                continue
            then = self.until(other, start)
            if then >= self.end or (
                then > until
                and self._goes_on(other, then, moves - 1)
            ):
                return True
        return False


def least(search, node, start):
    """Yield (time, the least in use): the servers of which records exist."""
    world = search.world
    host = world.cloud.nodes[node].uuid
    servers = [
        s for s in world.cloud.on(node)
        if s.uuid != search.uuid and s.uuid in world.book.instances
        and world.book.instances[s.uuid].host == host
    ]
    yield from occupancy.levels(
        world, node, servers, start, search.end, search.uuid
    )


def most(search, node, start):
    """Yield (time, the most that may be counted as in use)."""
    world = search.world
    known = {
        uuid: each for uuid, each in world.book.instances.items()
        if uuid != search.uuid
    }
    yield from occupancy.levels_at_most(
        world, node, known, start, search.end, search.uuid
    )
