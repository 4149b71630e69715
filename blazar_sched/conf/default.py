# SPDX-License-Identifier: Apache-2.0
"""Options of every process of the service."""

from oslo_config import cfg

GROUP = 'DEFAULT'

opts = [
    cfg.ListOpt(
        'parts',
        help='The parts of the service that run: features that a cloud may '
        'run without. By default every part that is installed. A part that '
        'does not run has no routes, no calls, no loops and no tables. After '
        'a part is added, run ``blazar-sched db upgrade``. The value must be '
        'the same for each manager and each API.',
    ),
]
