# SPDX-License-Identifier: Apache-2.0
"""The true history of servers, with which the promises are compared."""

import dataclasses

from blazar_sched.domain.instance import Instance
from blazar_sched.service.clients import nova

# Changes by others than the service.
BOOTED = 'booted'
REMOVED = 'removed'
MOVED = 'moved'
# Changes by the service.
DELETED = 'deleted'
SHELVED = 'shelved'
IMAGED = 'imaged'
TOLD = 'told'
# Changes by either.
ARRIVED = 'arrived'

# Changes of an image.
SAVING, ACTIVE, LOST = 'saving', 'active', 'lost'

# What becomes of a live migration.
REFUSED, UNDER_WAY, FAILED, DONE = 'refused', 'under way', 'failed', 'done'


@dataclasses.dataclass(frozen=True)
class Did:
    """A change of a server; `server` is the server just before the change.

    For `booted`, `arrived` and `told`, `server` is the server after the
    change. `record` is the ledger's record of a server that the service
    deletes or shelves, None if there is none.
    """

    at: int
    what: str
    server: nova.Server
    record: Instance | None = None


@dataclasses.dataclass
class Migration:
    """A migration for which the service has asked.

    :ivar target: the hostname for which the service has asked, None for any
    :ivar node: the hostname to which the server goes, None if nova-scheduler
        has found none
    :ivar record: the ledger's record of the server at the time of the request
    :ivar ends: when the server comes to the node, or the migration fails
    :ivar fails: whether the migration fails at its end
    :ivar cold: whether the server is stopped meanwhile
    :ivar chosen: the time in the metadata of the server, which its owner may
        have chosen
    """

    at: int
    uuid: str
    target: str | None
    record: Instance | None
    node: str | None = None
    ends: int = 0
    fails: bool = False
    cold: bool = False
    chosen: str | None = None
    status: str = REFUSED


@dataclasses.dataclass
class Image:
    """An image of a server, which must exist until `ready`."""

    at: int
    ready: int
    name: str
    metadata: dict
    status: str = SAVING

    def settle(self, now):
        if self.status == SAVING and now >= self.ready:
            self.status = ACTIVE

    def lose(self):
        if self.status == SAVING:
            self.status = LOST
