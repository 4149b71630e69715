# SPDX-License-Identifier: Apache-2.0
"""Options of the manager: events, instance records, what ends a lease."""

from oslo_config import cfg

GROUP = 'manager'

opts = [
    cfg.IntOpt(
        'minutes_before_end_lease',
        default=60,
        min=0,
        help='How long before its end a lease gets its before_end_lease '
        'event, where the client names no time. 0 makes no such event.',
    ),
    cfg.IntOpt(
        'event_max_workers',
        default=64,
        min=1,
        help='How many events may run at once.',
    ),
    cfg.IntOpt(
        'event_max_retries',
        default=30,
        min=0,
        max=50,
        help='How often an event that failed is tried again. After that it '
        'and its lease are in status ERROR.',
    ),
    cfg.FloatOpt(
        'event_retry_interval',
        default=10.0,
        min=0.1,
        help='Seconds between two tries of an event that failed.',
    ),
    cfg.FloatOpt(
        'event_poll_interval',
        default=0.5,
        min=0.1,
        help='Seconds between two looks for events that are due. Events made '
        'or moved by this manager are seen at once.',
    ),
    cfg.IntOpt(
        'event_claim_seconds',
        default=300,
        min=1,
        help='How long a manager may hold one try of an event before another '
        'manager takes it over.',
    ),
    cfg.IntOpt(
        'server_delete_timeout',
        default=600,
        min=1,
        help='Seconds that the end of a lease waits for Nova to delete its '
        'servers. After that the lease is in status ERROR.',
    ),
    cfg.FloatOpt(
        'sync_interval',
        default=10.0,
        min=0.1,
        help='Seconds between two looks at the servers on reservable hosts.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
