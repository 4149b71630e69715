# SPDX-License-Identifier: Apache-2.0
"""Time that is set ahead, and the replica that follows the ledger in it."""

import time

from blazar_sched.worker import process
from demo.cloud import wait_for


class Clock:
    """The real clock, `ahead` by a number of seconds."""

    def __init__(self):
        self.ahead = 0

    def __call__(self):
        return time.time() + self.ahead


def wait_for_replica(ledger):
    """Wait until nova-scheduler's replica equals the ledger."""
    newest = ledger.changes(0, 1)['newest']

    def probe():
        replica, stale = process.current()
        return not stale and replica.revision >= newest

    wait_for(f'revision {newest}', probe)
