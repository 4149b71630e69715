# SPDX-License-Identifier: Apache-2.0
"""All that there is in Nova and Placement."""

from tests.simulation import history
from tests.simulation.cloud import names
from tests.simulation.cloud import nodes
from tests.simulation.cloud import servers
from tests.simulation.cloud import slots


class Cloud(nodes.Nodes, slots.Slots, names.Names, servers.Servers):
    """All that there is in Nova and Placement; see `base.Calls`.

    :param ids: draws the uuids of servers
    :param place: chooses a host for a server that moves or comes back
    """

    def __init__(self, luck, clock, tell, ids, place):
        # Each base passes on what it does not take.
        super().__init__(luck, clock, tell)
        self._ids = ids
        self._place = place

    def leftovers(self):
        """Return all that reservations have made here."""
        return [
            *self.flavors_, *self.aggregates, *self.server_groups,
            *self.classes, *self.slots,
        ]

    def _note(self, what, server):
        super()._note(what, server)
        if what in (history.SHELVED, history.MOVED, history.REMOVED):
            self.let_go(server.uuid)
        slots = self.slots_of[server.uuid]
        if slots and what in (history.BOOTED, history.ARRIVED):
            self.hold(server.node, slots, server.uuid)

    def _gone(self, id_):
        super()._gone(id_)
        self.let_go(id_)
