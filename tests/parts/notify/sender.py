# SPDX-License-Identifier: Apache-2.0
"""The webhooks of a manager, and a manager whose claims are short.

So a test waits for a second, and not for a minute and a half, until another
manager goes on in place of a manager that was killed.
"""

from blazar_sched.cmd import main
from blazar_sched.parts.notify import manager as notify


def webhooks(manager):
    """Return the operations on webhooks of a manager."""
    [found] = [
        each for each in manager._threads if isinstance(each, notify.Webhooks)
    ]
    return found


def serve(file: str) -> int:
    notify.TURN, notify.SLACK = 1, 0
    return main.main(['manager', '--config-file', file])
