# SPDX-License-Identifier: Apache-2.0
"""Options of the manager: events, hosts, instances, and the end of a lease."""

from oslo_config import cfg
from oslo_config import types

from blazar_sched.domain import host
from blazar_sched.domain import reservation

GROUP = 'manager'

vacating = ('live-migrate', 'shelve', 'delete')

opts = [
    cfg.IntOpt(
        'minutes_before_end_lease',
        default=60,
        min=0,
        mutable=True,
        help='How long before its end a lease gets its before_end_lease '
        'event, where the client names no time; one that is no longer than '
        'that gets it in its middle. 0 makes no such event.',
    ),
    cfg.StrOpt(
        'before_end',
        default='',
        help='What that event does for a reservation of hosts or instances '
        'whose ``before_end`` is default: nothing where this is empty, else '
        'snapshot, email or webhook; other packages add theirs by an entry '
        'point in blazar_sched.before_end.',
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
        help='For how long an event that fails is tried again: until the '
        'pauses between its tries are so many times event_retry_interval '
        'together, which with the defaults is five minutes. After that the '
        'event and its lease are in status ERROR; of a before_end_lease the '
        'lease is degraded. 0: it is not tried again.',
    ),
    cfg.FloatOpt(
        'event_retry_interval',
        default=10.0,
        min=0.1,
        mutable=True,
        help='Seconds between two tries of an event that failed, at most: '
        'the first is within a second, then each pause is twice the one '
        'before.',
    ),
    cfg.FloatOpt(
        'start_retry_interval',
        default=300.0,
        min=1.0,
        mutable=True,
        help='Seconds between two tries of a start that was given up although '
        'its lease is active, as when it has grown while Nova was away. It is '
        'tried until it is done or the lease is over.',
    ),
    cfg.FloatOpt(
        'event_poll_interval',
        default=0.5,
        min=0.1,
        mutable=True,
        help='Seconds between two looks for events that are due. Events made '
        'or moved by this manager are seen at once.',
    ),
    cfg.FloatOpt(
        'clock_tolerance',
        default=5.0,
        min=1.0,
        mutable=True,
        help="By how many seconds a manager's clock may differ from the "
        "database's, which says what is due. A manager whose clock differs by "
        'more says so, and does no event meanwhile.',
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
        help='Seconds that an event waits for Nova: the end of a lease for '
        'its servers to go, images of them included, and the start of an '
        'instance:lifetime for its server to come. After that it is given '
        'up, and the lease is in status ERROR.',
    ),
    cfg.FloatOpt(
        'sync_interval',
        default=10.0,
        min=0.1,
        mutable=True,
        help='Seconds between two looks at all servers. Those that Nova '
        'notifies of are looked at within seconds anyway: with '
        'enable_notification_monitor some minutes will do.',
    ),
    cfg.FloatOpt(
        'flavor_sync_interval',
        default=30.0,
        min=1.0,
        mutable=True,
        help="Seconds between two looks at Nova's flavors. They are reserved "
        'as they were at the last one.',
    ),
    cfg.IntOpt(
        'cleaning_time',
        default=0,
        min=0,
        mutable=True,
        help='Minutes that a host is left alone between two reservations: '
        'none is placed closer than that to what the host is known to be '
        'used for. Leases that are there already stay. A host may have a '
        'cleaning_time of its own, which goes before this one.',
    ),
    cfg.ListOpt(
        'cleaning_times',
        default=[],
        item_type=types.String(
            regex=f'^({"|".join(reservation.PLACED)})=[0-9]{{1,8}}$'
        ),
        mutable=True,
        help='The cleaning_time of reservations of certain types, in '
        'minutes: physical:host=60,virtual:instance=5. There are '
        f'{", ".join(reservation.PLACED)}.',
    ),
    cfg.IntOpt(
        'vacate_lead_time',
        default=600,
        min=0,
        mutable=True,
        help='How many seconds before a lease starts its hosts begin to be '
        'vacated: what is in its way there is told, moved, shelved or '
        'deleted by then. 0: only what has to yield is deleted, at the start.',
    ),
    cfg.IntOpt(
        'vacate_notice',
        default=120,
        min=0,
        mutable=True,
        help='How many of these seconds pass between telling the servers '
        'that are in the way and doing anything to them: half of those that '
        'are left until the start at most.',
    ),
    cfg.ListOpt(
        'vacate_order',
        default=['live-migrate', 'shelve', 'delete'],
        item_type=types.String(choices=vacating),
        mutable=True,
        help='What is done to servers in the way, the next where one fails.',
    ),
    cfg.ListOpt(
        'vacate_preemptible_order',
        default=['delete'],
        item_type=types.String(choices=vacating),
        mutable=True,
        help='The same for preemptible ones. Those that are shelved come '
        'back when there is room.',
    ),
    cfg.FloatOpt(
        'restore_interval',
        default=60.0,
        min=1.0,
        mutable=True,
        help='Seconds between two tries to bring back servers that were '
        'shelved to make room.',
    ),
    cfg.StrOpt(
        'lifetime_on_end',
        default=reservation.DELETE,
        choices=reservation.LIFETIME_ON_END,
        mutable=True,
        help='What becomes of a server at the end of the lifetime that it '
        'has declared, where it did not say that: delete, shelve, or '
        'snapshot, which deletes it once there is an image of it.',
    ),
    cfg.StrOpt(
        'default_resource_properties',
        default='',
        help='What a reservation of hosts or instances asks of hosts that '
        'names no resource_properties: JSON, as it is there, with $$ for '
        'each $. What it holds already it keeps.',
    ),
    cfg.BoolOpt(
        'retry_without_defaults',
        default=True,
        mutable=True,
        help='Whether a lease that finds no room so is tried once more '
        'without default_resource_properties.',
    ),
    cfg.BoolOpt(
        'overcommit_reservations',
        default=True,
        help="Whether reservations of instances may have more of a host's "
        'VCPUs, memory and disk than it has, up to the allocation ratios in '
        'Placement. If not, what is reserved of a host at any time is at '
        'most total - reserved of its inventory, as in Blazar; servers that '
        'draw on no reservation still count by the ratios. Leases that are '
        'there already stay. The same for all managers.',
    ),
    cfg.StrOpt(
        'default_hold',
        default=host.SHARED,
        choices=host.HOLDS,
        help='How a host is held whose registration does not say it: shared '
        'lets ordinary servers use it until its next reservation, dedicated '
        'keeps them off it altogether.',
    ),
    cfg.StrOpt(
        'freepool_aggregate_name',
        default='freepool',
        help="Nova's host aggregate of the dedicated hosts that no "
        'reservation has as a whole. It is made if it is not there.',
    ),
    cfg.FloatOpt(
        'host_sync_interval',
        default=60.0,
        min=1.0,
        mutable=True,
        help='Seconds between two looks at what Nova and Placement say of '
        'the registered hosts.',
    ),
    cfg.BoolOpt(
        'enable_polling_monitor',
        default=True,
        mutable=True,
        help='Whether Nova is asked regularly which hosts have failed, and '
        'Neutron which floating IPs can still be had.',
    ),
    cfg.FloatOpt(
        'polling_interval',
        default=60.0,
        min=1.0,
        mutable=True,
        help='Seconds between two such looks, and between two tries to heal '
        'what reservations have lost.',
    ),
    cfg.BoolOpt(
        'enable_notification_monitor',
        default=False,
        help="Whether Nova's notifications of services and servers have the "
        'hosts and these servers looked at too. Nova must send versioned '
        'ones.',
    ),
    cfg.StrOpt(
        'notification_exchange',
        default='nova',
        help="The exchange of these notifications: nova.conf's [DEFAULT] "
        'control_exchange.',
    ),
    cfg.ListOpt(
        'notification_topics',
        default=['versioned_notifications'],
        help='The topics of these notifications, as in '
        "nova.conf's [notifications] versioned_notifications_topics.",
    ),
    cfg.IntOpt(
        'healing_interval',
        default=60,
        min=0,
        mutable=True,
        help='How many minutes ahead reservations on a failed host are '
        'moved; those of later leases stay, as the host may be back by '
        'then. 0 moves all.',
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
