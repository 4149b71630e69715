# SPDX-License-Identifier: Apache-2.0
"""The commands of the part, each imported on use."""

COMMANDS = {
    'why': (
        'show why hosts were rejected for a server',
        'blazar_sched.parts.ops.why',
    ),
    'relocations': (
        'show the instances that have to be moved, and where to',
        'blazar_sched.parts.ops.relocations',
    ),
    'replicas': (
        'show the version of each manager, API and scheduler worker',
        'blazar_sched.parts.ops.replicas',
    ),
}
UPGRADE_CHECK = 'blazar_sched.parts.ops.upgrade_check'
