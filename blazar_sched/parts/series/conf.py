# SPDX-License-Identifier: Apache-2.0
"""The options of series."""

from oslo_config import cfg

from blazar_sched.conf import manager

OPTIONS = {manager.GROUP: [
    cfg.IntOpt(
        'series_horizon', default=90 * 86400, min=1, mutable=True,
        help='Seconds from now on within which the occurrences of a series '
        'are booked. Later occurrences are booked as time passes.',
    ),
    cfg.IntOpt(
        'max_series', default=50, min=0, mutable=True,
        help='Maximum number of series of a project, those included that are '
        'over but not deleted. 0 allows no series.',
    ),
]}
