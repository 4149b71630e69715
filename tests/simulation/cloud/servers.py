# SPDX-License-Identifier: Apache-2.0
"""Servers and their images, with a record of all their changes."""

import dataclasses
import uuid

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.service.clients import nova
from tests.simulation import history
from tests.simulation.cloud import base
from tests.simulation.cloud import migrations

# Seconds that Nova takes to delete a server, and Glance to store an image.
DELETES_IN = 3
COPIES_IN = 20
COPYING = 'image_uploading'
SHELVED = 'SHELVED_OFFLOADED'


class Servers(base.Calls):
    """The existing servers, by uuid.

    :ivar done: a `history.Did` for each change; the player removes them
    :ivar came: when each server came to its host
    :ivar images: all images that were ever requested, by server
    :ivar slots_of: the resource class of which each server uses one, or None
    """

    # Draws uuids; chooses a host for a server as nova-scheduler does; reads
    # the ledger's record of a server.
    _ids = None
    _place = None
    _record = None

    def __init__(self, *args):
        super().__init__(*args)
        self.servers_ = {}
        self.done = []
        self.came = {}
        self.images = {}
        self.slots_of = {}
        self._deleting = {}

    # Actions of others than the service

    def boot(self, id_, node, project_id, amounts, slots=None, **values):
        """Create a server on a node that nova-scheduler has chosen.

        :param slots: the resource class of which the server uses one, if any
        """
        self.slots_of[id_] = slots
        server = nova.Server(**{
            'uuid': id_,
            'name': f'server {len(self.images)}',
            'node': node,
            'project_id': project_id,
            'amounts': amounts,
            'end': window.FOREVER,
            'reservation_id': None,
            'preemptible': False,
            'status': 'ACTIVE',
            'created': int(self._clock()),
            **values,
        })
        self.servers_[id_] = server
        self.images[id_] = []
        self._note(history.BOOTED, server)
        return server

    def new_id(self):
        return str(uuid.UUID(int=self._ids.getrandbits(128), version=4))

    def remove(self, server):
        """Delete a server at once, as its owner."""
        self._note(history.REMOVED, server)
        self._gone(server.uuid)

    def move(self, server, node):
        """Move a server to another node."""
        self._note(history.MOVED, server)
        self._change(server, node=node, arrived=True)

    def resize_server(self, server, node, slots, **values):
        """Give a server another flavor, and move it to another node.

        :param slots: as of `boot`
        """
        self._note(history.MOVED, server)
        self.slots_of[server.uuid] = slots
        self._change(server, node=node, arrived=True, **values)

    def on(self, node):
        """Return the servers on a node that are not being deleted."""
        return [
            s for s in self.servers_.values()
            if s.node == node and s.task != 'deleting'
        ]

    def settle(self):
        """Let Nova and Glance complete the actions that take time."""
        now = self._clock()
        for id_, since in list(self._deleting.items()):
            if now >= since + DELETES_IN:
                self._gone(id_)
        for id_, images in self.images.items():
            for image in images:
                image.settle(now)
            server = self.servers_.get(id_)
            if server is not None and server.task == COPYING and not any(
                image.status == history.SAVING for image in images
            ):
                self._change(server, task=None)

    # Requests of the service

    def servers(self, host=None, project_id=None, status=None):
        self._call()
        found = [
            s for s in self.servers_.values()
            if host in (None, s.node) and project_id in (None, s.project_id)
            and status in (None, s.status)
        ]
        return iter(sorted(found, key=lambda s: s.uuid))

    def server(self, uuid):
        self._call()
        return self.servers_.get(uuid)

    def has_moved(self, server, since):
        self._call()
        return server.created < self.came[server.uuid] >= since

    def delete_servers(self, servers):
        none = True
        for server in servers:
            none = False
            self._call(
                lambda s=server: self._delete(s),
                f'server {server.uuid} is deleted',
            )
        return none

    def shelve_servers(self, servers):
        none = True
        for server in servers:
            if server.node is None:
                continue
            none = False
            self._call(
                lambda s=server: self._shelve(s),
                f'server {server.uuid} is shelved',
            )
        return none

    def unshelve_server(self, server):
        def work():
            known = self.servers_.get(server.uuid)
            if known is None or known.status != SHELVED:
                return
            node = self._place(known)
            if node is not None:
                self._change(known, node=node, status='ACTIVE', arrived=True)

        self._call(work, f'server {server.uuid} is to come back')

    def set_server_metadata(self, server, metadata):
        def work():
            known = self.servers_.get(server.uuid)
            if known is not None:
                held = {**known.metadata, **metadata}
                held = {k: v for k, v in held.items() if v is not None}
                self._change(known, metadata=held)
                self._note(history.TOLD, self.servers_[known.uuid])

        self._call(work)

    def create_image(self, server, name, metadata):
        mark = dict(metadata)
        made = self.images[server.uuid]
        # This is evaluated before the call, so that the next call finds an
        # image that was made although the call failed.
        known = [i for i in made if (i.name, i.metadata) == (name, mark)]
        if known:
            self._call()
            if known[0].status == history.LOST:
                raise exception.Unavailable(f'the image {name} is lost')
            return known[0].status == history.ACTIVE

        def work():
            if server.uuid in self.servers_:
                made.append(history.Image(
                    int(self._clock()), int(self._clock()) + COPIES_IN, name,
                    mark,
                ))
                self._note(history.IMAGED, server)
                if self.servers_[server.uuid].task is None:
                    self._change(server, task=COPYING)

        self._call(work, f'server {server.uuid} is copied')
        return False

    def _delete(self, server):
        if server.uuid not in self.servers_:
            return
        if server.uuid not in self._deleting:
            self._deleting[server.uuid] = self._clock()
            self._note(history.DELETED, self.servers_[server.uuid])
            self._change(server, task='deleting')

    def _shelve(self, server):
        known = self.servers_.get(server.uuid)
        if (
            known is not None and known.node is not None
            and known.task != migrations.MIGRATING
        ):
            self._note(history.SHELVED, known)
            self._change(known, node=None, status=SHELVED)

    def _gone(self, id_):
        self._deleting.pop(id_, None)
        self.servers_.pop(id_, None)
        for image in self.images[id_]:
            image.lose()

    def _change(self, server, arrived=False, **values):
        known = self.servers_.get(server.uuid)
        if known is not None:
            new = dataclasses.replace(known, **values)
            self.servers_[server.uuid] = new
            if arrived:
                self._note(history.ARRIVED, new)

    def _note(self, what, server):
        known = self.servers_.get(server.uuid, server)
        if what in (history.BOOTED, history.ARRIVED):
            self.came[server.uuid] = int(self._clock())
        record = None
        if what in (history.DELETED, history.SHELVED):
            record = self._record(server.uuid)
        self.done.append(history.Did(int(self._clock()), what, known, record))
