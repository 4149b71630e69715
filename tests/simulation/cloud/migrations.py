# SPDX-License-Identifier: Apache-2.0
"""Migrations that the service requests, which take time and may fail."""

from blazar_sched.service.upkeep.relocation import MOVE_AT
from tests.simulation import history
from tests.simulation.cloud import base

MIGRATING = 'migrating'
VERIFY_RESIZE = 'VERIFY_RESIZE'


class Migrations(base.Calls):
    """The migrations; without any settings a server moves at once.

    :ivar migrations: all that the service has requested, the first first
    :ivar migration_times: how many seconds a migration may take
    :ivar migration_failures: the share of migrations that fail at their end
    :ivar migration_luck: draws both
    """

    def __init__(self, *args):
        super().__init__(*args)
        self.migrations = []
        self.migration_times = (0,)
        self.migration_failures = 0.0
        self.migration_luck = None
        self._under_way = {}

    def coming_to(self, node):
        """Return the servers that are being migrated to a node."""
        return [
            self.servers_[m.uuid] for m in self._under_way.values()
            if m.node == node
        ]

    def settle(self):
        """Let Nova complete the migrations that are due."""
        super().settle()
        now = self._clock()
        for migration in list(self._under_way.values()):
            if now >= migration.ends:
                self._complete(migration)

    def migrate_server(self, server, service_name=None, way='live'):
        asked = history.Migration(
            int(self._clock()), server.uuid, service_name,
            self._record(server.uuid),
        )
        asked.cold = way == 'cold'
        asked.chosen = server.metadata.get(MOVE_AT)
        refused = self._refuses(server.uuid, service_name)
        self._call(
            lambda: self._begin(asked, refused),
            f'server {server.uuid} is to move to {service_name or "any host"}'
            f'{", which nova refuses" if refused else ""}',
        )
        return not refused

    def confirm_migration(self, server):
        def confirm():
            known = self.servers_.get(server.uuid)
            if known is not None and known.status == VERIFY_RESIZE:
                self._change(known, status='ACTIVE')

        self._call(confirm, f'the move of {server.uuid} is confirmed')

    def _refuses(self, uuid, target):
        known = self.servers_.get(uuid)
        if known is None or known.task is not None or (
            known.node in (None, target) or known.status == VERIFY_RESIZE
        ):
            return True
        nodes = [known.node] if target is None else [known.node, target]
        return self.takes_time and not all(self.nodes[n].up for n in nodes)

    @property
    def takes_time(self):
        return self.migration_times != (0,)

    def _begin(self, asked, refused):
        self.migrations.append(asked)
        if refused:
            return
        known = self.servers_[asked.uuid]
        asked.node = self._place(known, asked.target)
        asked.ends = asked.at
        asked.fails = asked.node in (None, known.node)
        if self.takes_time:
            draw = self.migration_luck
            asked.ends += draw.choice(self.migration_times)
            asked.fails |= draw.random() < self.migration_failures
        asked.status = history.UNDER_WAY
        self._under_way[asked.uuid] = asked
        self._change(known, task=MIGRATING)
        if not self.takes_time:
            self._complete(asked)

    def _complete(self, migration):
        del self._under_way[migration.uuid]
        server = self.servers_[migration.uuid]
        self._change(server, task=None)
        if migration.fails or not self.nodes[migration.node].up:
            migration.status = history.FAILED
            self._tell(f'server {migration.uuid} stays on {server.node}')
        else:
            migration.status = history.DONE
            self._tell(f'server {migration.uuid} comes to {migration.node}')
            self.move(self.servers_[migration.uuid], migration.node)
            if migration.cold:
                self._change(
                    self.servers_[migration.uuid], status=VERIFY_RESIZE
                )

    def _note(self, what, server):
        super()._note(what, server)
        if what in (history.DELETED, history.REMOVED):
            self._give_up(server.uuid)

    def _give_up(self, uuid):
        """Abort the migration of a server that is deleted."""
        migration = self._under_way.pop(uuid, None)
        if migration is not None:
            migration.status = history.FAILED
