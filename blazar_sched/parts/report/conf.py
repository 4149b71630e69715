# SPDX-License-Identifier: Apache-2.0
"""The options of the usage."""

from oslo_config import cfg

from blazar_sched.conf import manager

OPTIONS = {manager.GROUP: [
    cfg.FloatOpt(
        'usage_interval', default=300.0, min=1.0, mutable=True,
        help='Seconds between two measurements of the usage of reservations, '
        'by one of the managers, for the report of '
        '``GET /v1/reports/usage``. A server counts from '
        'the measurement before the one that finds it in the reservation.',
    ),
    cfg.IntOpt(
        'keep_usage', default=3 * 366 * 86400, min=0, mutable=True,
        help='Seconds for which the usage of a day is kept, also after its '
        'leases were deleted; 0 keeps everything. The default is three years.',
    ),
    cfg.BoolOpt(
        'notify_usage', default=False, mutable=True,
        help='Whether a notification ``reservation.exists`` is sent for each '
        'reservation after each day in UTC, with the usage of that day, as '
        'Nova does for servers. [oslo_messaging_notifications] has to name a '
        'driver.',
    ),
]}
