# SPDX-License-Identifier: Apache-2.0
"""The options of lease requests."""

from oslo_config import cfg

from blazar_sched.conf import manager

OPTIONS = {manager.GROUP: [
    cfg.IntOpt(
        'max_waiting_requests', default=5, min=0, mutable=True,
        help='Maximum number of lease requests of a project that can wait for '
        'room at a time. 0 allows no request to wait.',
    ),
    cfg.BoolOpt(
        'requests_by_turns', default=False, mutable=True,
        help='Whether the projects take turns among the new lease requests of '
        'a priority: the first requests of all projects are ahead of the '
        'second ones. Otherwise the oldest request is first.',
    ),
]}
