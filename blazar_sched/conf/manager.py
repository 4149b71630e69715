# SPDX-License-Identifier: Apache-2.0
"""Options of the manager: events, instance records, what ends a lease."""

from oslo_config import cfg

GROUP = 'manager'

opts = [
    cfg.IntOpt(
        'minutes_before_end_lease',
        default=60,
        min=0,
        mutable=True,
        help='How long before its end a lease gets its before_end_lease '
        'event, where the client names no time. 0 makes no such event.',
    ),
    cfg.IntOpt(
        'event_max_workers',
        default=64,
        min=1,
        help='How many events may run at once. One that hangs in Nova or '
        "Placement holds its worker for that service's timeout, 60 s unless "
        'set. What has failed before is tried again by a quarter as many '
        'other workers.',
    ),
    cfg.IntOpt(
        'event_max_retries',
        default=30,
        min=0,
        max=50,
        mutable=True,
        help='How often an event that failed is tried again. After that it '
        'and its lease are in status ERROR.',
    ),
    cfg.FloatOpt(
        'event_retry_interval',
        default=10.0,
        min=0.1,
        mutable=True,
        help='Seconds between two tries of an event that failed.',
    ),
    cfg.FloatOpt(
        'event_poll_interval',
        default=0.5,
        min=0.1,
        mutable=True,
        help='Seconds between two looks for events that are due. Events made '
        'or moved by this manager are seen at once.',
    ),
    cfg.IntOpt(
        'event_claim_seconds',
        default=30,
        min=1,
        help='How long a manager may be silent before another one takes over '
        'the events that it was doing. It renews its claims every third of '
        'that. The same for all managers.',
    ),
    cfg.IntOpt(
        'server_delete_timeout',
        default=600,
        min=1,
        mutable=True,
        help='Seconds that the end of a lease waits for Nova to delete its '
        'servers. After that the lease is in status ERROR.',
    ),
    cfg.FloatOpt(
        'sync_interval',
        default=10.0,
        min=0.1,
        mutable=True,
        help='Seconds between two looks at the servers on reservable hosts.',
    ),
    cfg.IntOpt(
        'changes_kept',
        default=100000,
        min=1,
        mutable=True,
        help='How many of the newest revisions keep their changes. A replica '
        'that is further behind takes a full copy.',
    ),
    cfg.FloatOpt(
        'prune_interval',
        default=600.0,
        min=1.0,
        mutable=True,
        help='Seconds between two times that older changes are deleted.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
