# SPDX-License-Identifier: Apache-2.0
"""What really happened to servers, for promises to be held against."""

import dataclasses

from blazar_sched.service.clients import nova

# By others than the service.
BOOTED = 'booted'
REMOVED = 'removed'
MOVED = 'moved'
# By the service.
DELETED = 'deleted'
SHELVED = 'shelved'
IMAGED = 'imaged'
TOLD = 'told'
# By either.
ARRIVED = 'arrived'

# What becomes of an image.
SAVING, ACTIVE, LOST = 'saving', 'active', 'lost'


@dataclasses.dataclass(frozen=True)
class Did:
    """A change of a server; `server` is what it was just before.

    But for what `booted`, `arrived` and `told` tell of: what it is by then.
    """

    at: int
    what: str
    server: nova.Server


@dataclasses.dataclass
class Image:
    """An image of a server: it takes until `ready`, and the server has to be
    there as long.
    """

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
