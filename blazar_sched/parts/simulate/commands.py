# SPDX-License-Identifier: Apache-2.0
"""The command of the part, imported on use."""

COMMANDS = {
    'simulate': (
        'compare scheduling policies by simulating a trace',
        'blazar_sched.parts.simulate.command',
    ),
}
