# SPDX-License-Identifier: Apache-2.0
"""A manager whose claims on webhooks are short.

So a test waits for a second, and not for a minute and a half, until another
manager goes on in place of a manager that was killed.
"""

from blazar_sched.cmd import main
from blazar_sched.service.upkeep import webhook


def serve(file: str) -> int:
    webhook.TURN, webhook.SLACK = 1, 0
    return main.main(['manager', '--config-file', file])
