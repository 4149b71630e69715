# SPDX-License-Identifier: Apache-2.0
"""The whole cloud: all that Nova and Placement have."""

from tests.simulation import history
from tests.simulation.cloud import migrations
from tests.simulation.cloud import names
from tests.simulation.cloud import nodes
from tests.simulation.cloud import servers
from tests.simulation.cloud import slots


class SimulatedCloud(
    nodes.Nodes, slots.Slots, names.Names, migrations.Migrations,
    servers.Servers,
):
    """The whole cloud; see `base.Calls`.

    :param ids: draws the uuids of servers
    :param place: chooses a host for a server that moves or is unshelved, or
        returns the host that is named if the server may go there
    :param record: returns the ledger's record of a server
    """

    def __init__(self, luck, clock, tell, ids, place, record):
        # Each base class passes on the arguments that it does not use.
        super().__init__(luck, clock, tell)
        self._ids = ids
        self._place = place
        self._record = record

    def leftovers(self):
        """Return all objects that reservations have created here."""
        return [
            *self.flavors_, *self.known.aggregates,
            *self.known.server_groups, *self.classes, *self.slots,
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
