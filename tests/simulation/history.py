# SPDX-License-Identifier: Apache-2.0
"""The true history of servers, with which the promises are compared."""

import dataclasses

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


@dataclasses.dataclass(frozen=True)
class Did:
    """A change of a server; `server` is the server just before the change.

    For `booted`, `arrived` and `told`, `server` is the server after the
    change.
    """

    at: int
    what: str
    server: nova.Server


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
