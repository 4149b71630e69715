# SPDX-License-Identifier: Apache-2.0
"""Options of the manager: events, hosts, instances, and the end of a lease."""

from oslo_config import cfg
from oslo_config import types

from blazar_sched.conf import group_limit
from blazar_sched.conf import relocation
from blazar_sched.domain import host
from blazar_sched.domain import reservation
from blazar_sched.domain.demand import PLACED

GROUP = 'manager'

vacating = ('live-migrate', 'shelve', 'delete')

opts = [
    *relocation.opts,
    cfg.FloatOpt(
        'closing_interval', default=10.0, min=0.1, mutable=True,
        deprecated_name='maintenance_interval',
        help='Seconds between two looks for hosts that will be closed soon, '
        'or are closed, to vacate them. See also ``vacate_lead_time``.',
    ),
    cfg.IntOpt(
        'minutes_before_end_lease', default=60, min=0, mutable=True,
        help='Minutes from the before_end_lease event of a lease to the end '
        'of the lease, if the client gives no time for the event. The event '
        'of a lease that is not longer than this is in the middle of the '
        'lease. 0 disables the event.',
    ),
    cfg.StrOpt(
        'before_end', default='',
        help='Action of the before_end_lease event for reservations of hosts '
        'or instances whose ``before_end`` is ``default``: ``snapshot``, '
        'or, of the part ``notify``, ``email`` or ``webhook``; empty means no '
        'action. Other packages can provide actions as entry points of the '
        'group ``blazar_sched.before_end``.',
    ),
    cfg.IntOpt(
        'event_max_workers', default=64, min=1,
        help='Maximum number of events that a manager executes at the same '
        'time. Raise this value if many leases start or end at the same '
        'time: an event that waits for a response of Nova or Placement '
        'occupies a worker thread until the timeout of that service, 60 '
        'seconds unless configured. Retries of failed events have separate '
        'worker threads, a quarter of this number.',
    ),
    cfg.IntOpt(
        'event_max_retries', default=30, min=0, max=50, mutable=True,
        help='Limit of the retries of an event that another service refuses, '
        'in units of ``event_retry_interval``: the event is retried until the '
        'pauses between its attempts add up to this number times '
        '``event_retry_interval``, 5 minutes by default. A service of '
        'OpenStack that cannot be reached, or answers 5xx, 429 or 401, uses '
        'up no retries. After that the '
        'event is in status ERROR; so is the lease, except after a failed '
        'before_end_lease event, which marks the lease as degraded. 0 '
        'disables retries.',
    ),
    cfg.FloatOpt(
        'event_retry_interval', default=10.0, min=0.1, mutable=True,
        help='Maximum number of seconds between two attempts of an event that '
        'another service refuses. The first retry follows within a second; '
        'each further pause is twice as long as the one before, up to this '
        'value. See also ``event_max_retries``.',
    ),
    cfg.FloatOpt(
        'clock_tolerance', default=5.0, min=1.0, mutable=True,
        help='Maximum difference between the clock of a manager and the clock '
        'of the database, in seconds. The clock of the database determines '
        'which events are due. A manager with a larger difference logs an '
        'error and executes no events until the difference is within this '
        'limit.',
    ),
    cfg.IntOpt(
        'event_claim_seconds', default=30, min=1,
        help='Seconds that a claim of a manager on an event lasts unless '
        'renewed. If a manager stops renewing its claims, other managers '
        'take over its events after this time. A manager renews its claims '
        'every third of this time. Set the same value for all managers.',
    ),
    cfg.IntOpt(
        'server_delete_timeout', default=600, min=1, mutable=True,
        help='Seconds that an event waits for Nova: the end_lease event for '
        'the deletion of the servers of the lease, including images of them '
        'if requested, and the start_lease event of an instance:lifetime '
        'reservation for its server to be created. After this time the event '
        'fails, and the lease is in status ERROR.',
    ),
    cfg.FloatOpt(
        'sync_interval', default=10.0, min=0.1, mutable=True,
        help='Seconds between two synchronizations of all servers with Nova. '
        'With ``enable_notification_monitor`` an interval of some minutes is '
        'sufficient: servers that Nova sends notifications about are '
        'synchronized within seconds.',
    ),
    cfg.FloatOpt(
        'flavor_sync_interval', default=30.0, min=1.0, mutable=True,
        help='Seconds between two synchronizations of the flavors with Nova. '
        'A new reservation of a flavor uses the properties of the flavor at '
        'the last synchronization.',
    ),
    cfg.IntOpt(
        'cleaning_time', default=0, min=0, mutable=True,
        help='Minutes for which a host is kept free between two reservations. '
        'New reservations are not placed on a host within this time before '
        'or after any other known use of the host. Existing leases are not '
        'moved. The ``cleaning_time`` of a host and ``cleaning_times`` '
        'override this option.',
    ),
    cfg.ListOpt(
        'cleaning_times', default=[],
        item_type=types.String(regex=f'^({"|".join(PLACED)})=[0-9]{{1,8}}$'),
        mutable=True,
        help='Minutes for which a host is kept free between two reservations, '
        'by the type of the reservation, for example '
        '``physical:host=60,virtual:instance=5``. Overrides '
        '``cleaning_time`` for these types. The types are '
        f'{", ".join(PLACED)}.',
    ),
    cfg.IntOpt(
        'vacate_lead_time', default=600, min=0, mutable=True,
        help='Seconds before the start of a lease at which the manager begins '
        'to remove conflicting servers from the hosts of the lease. Such '
        'servers are live-migrated, shelved or deleted before the start; see '
        '``vacate_order``. 0 disables this: only preemptible servers are '
        'deleted, when the lease starts.',
    ),
    cfg.IntOpt(
        'vacate_notice', default=120, min=0, mutable=True,
        help='Seconds from the notification about a conflicting server to the '
        'first action on the server. They are part of ``vacate_lead_time``; '
        'at most half of the time that is left until the start of the lease '
        'is used. See also ``vacate_order``.',
    ),
    cfg.ListOpt(
        'vacate_order', default=['live-migrate', 'shelve', 'delete'],
        item_type=types.String(choices=vacating), mutable=True,
        help='Actions by which the manager removes a conflicting server that '
        'is not preemptible from a host, in the order of their application: '
        'the next action is used if an action fails.',
    ),
    cfg.ListOpt(
        'vacate_preemptible_order', default=['delete'],
        item_type=types.String(choices=vacating), mutable=True,
        help='Actions by which the manager removes a conflicting preemptible '
        'server from a host, in the order of their application. The flavor '
        'extra spec ``lifecycle:preempt_policy``, ``shelve`` or ``delete``, '
        'comes before these actions. A preemptible server that was shelved '
        'is unshelved when a host has room; see ``restore_interval``.',
    ),
    cfg.IntOpt(
        'preemption_min_age', default=0, min=0, mutable=True,
        help='Age in seconds below which a preemptible server is removed only '
        'if the removal of older preemptible servers is not enough. A window '
        'that needs the whole host removes all of them.',
    ),
    cfg.ListOpt(
        'preemption_preference', default=[],
        item_type=types.String(
            regex=r'(age|resource:[A-Z][A-Z0-9_]*):(asc|desc)'
        ),
        mutable=True,
        help='Order in which preemptible servers are removed where not all of '
        'them have to go: items ``age:asc`` (the youngest server first), '
        '``age:desc``, ``resource:<resource class>:asc`` (the server with '
        'the least of the class first) and '
        '``resource:<resource class>:desc``, of which an earlier item '
        'decides before a later item. Without items, the server that ends '
        'last goes first, and among equals the youngest server.',
    ),
    cfg.FloatOpt(
        'restore_interval', default=60.0, min=1.0, mutable=True,
        help='Seconds between two attempts to unshelve servers that were '
        'shelved to free the hosts of a lease.',
    ),
    cfg.StrOpt(
        'lifetime_on_end', default=reservation.DELETE,
        choices=reservation.LIFETIME_ON_END, mutable=True,
        help='Action on a server at the end of its declared lifetime, if the '
        'server declares no action: ``delete``; ``shelve``; or ``snapshot``, '
        'which deletes the server after an image of it is complete.',
    ),
    cfg.StrOpt(
        'default_resource_properties', default='',
        help='Requirement on the hosts of reservations of hosts or instances '
        'that have no ``resource_properties``. The value is JSON, in the '
        'format of ``resource_properties``, with each $ written as $$. Empty '
        'means no requirement. Changing this option does not affect existing '
        'allocations. See also ``retry_without_defaults``.',
    ),
    cfg.BoolOpt(
        'retry_without_defaults', default=True, mutable=True,
        help='Whether a lease for which no hosts are found is placed again '
        'without ``default_resource_properties``.',
    ),
    cfg.BoolOpt(
        'overcommit_reservations', default=True,
        help='Whether reservations of instances can use the allocation ratios '
        'of a host in Placement, and thus reserve more VCPUs, memory and '
        'disk than the host has. If not, the reserved amounts are at most '
        '``total - reserved`` of the inventory, as in Blazar; servers '
        'outside of reservations still use the allocation ratios. Existing '
        'leases are not changed. Set the same value for all managers.',
    ),
    cfg.StrOpt(
        'default_hold', default=host.SHARED, choices=host.HOLDS,
        help='Hold of a host whose registration does not set ``hold``: '
        'servers outside of reservations can use a ``shared`` host until the '
        'next reservation of the host; they can never use a ``dedicated`` '
        'host.',
    ),
    cfg.StrOpt(
        'freepool_aggregate_name', default='freepool',
        help='Name of the host aggregate in Nova that contains the dedicated '
        'hosts that no reservation has as whole hosts. The aggregate is '
        'created if it does not exist.',
    ),
    cfg.FloatOpt(
        'host_sync_interval', default=60.0, min=1.0, mutable=True,
        help='Seconds between two synchronizations of the registered hosts '
        'with Nova and Placement.',
    ),
    cfg.BoolOpt(
        'enable_polling_monitor', default=True, mutable=True,
        help='Whether the manager regularly queries Nova for failed hosts, '
        'and other services for other resources that can no longer be '
        'reserved. See also ``polling_interval``.',
    ),
    cfg.FloatOpt(
        'polling_interval', default=60.0, min=1.0, mutable=True,
        help='Seconds between two queries for failed hosts and other '
        'resources, and between two attempts to replace the lost allocations '
        'of reservations.',
    ),
    cfg.BoolOpt(
        'enable_notification_monitor', default=False,
        help='Whether the manager listens to notifications of Nova about '
        'services and servers, in order to check hosts and servers without '
        'waiting for ``polling_interval`` or ``sync_interval``. Nova must '
        'send versioned notifications. See also ``notification_exchange`` '
        'and ``notification_topics``.',
    ),
    cfg.StrOpt(
        'notification_exchange', default='nova',
        help='Exchange of the notifications of Nova: the value of [DEFAULT] '
        'control_exchange in nova.conf. Only used with '
        '``enable_notification_monitor``.',
    ),
    cfg.ListOpt(
        'notification_topics', default=['versioned_notifications'],
        help='Topics of the notifications of Nova, as in [notifications] '
        'versioned_notifications_topics in nova.conf. Only used with '
        '``enable_notification_monitor``.',
    ),
    cfg.IntOpt(
        'healing_interval', default=60, min=0, mutable=True,
        help='Minutes from now within which a reservation must start for its '
        'allocations to be moved off a failed host. Later reservations keep '
        'their allocations, because the host may recover before they start. '
        '0 moves the allocations of all reservations.',
    ),
    cfg.IntOpt(
        'clear_notice', default=30, min=0, mutable=True,
        help='Seconds from the notification of a preemptible server that is '
        'on what an active lease holds to the removal of the server.',
    ),
    group_limit.opt,
    cfg.IntOpt(
        'changes_kept', default=100000, min=1, mutable=True,
        help='Number of the newest revisions of the ledger whose changes are '
        'kept. A replica that is behind by more revisions fetches a full '
        'copy of the ledger. A larger value needs more space in the database.',
    ),
    cfg.IntOpt(
        'keep_leases', default=366 * 86400, min=0, mutable=True,
        help='Seconds after its end for which a lease that is over is kept in '
        'the database. Leases in ERROR, lease requests, series and '
        'maintenances that have been over for as long are deleted, too, at '
        'most 10,000 leases in ten minutes. 0 keeps everything, '
        'so that the database grows without end. The default is a year. '
        'Reports of the usage do not need these leases: see ``keep_usage``.',
    ),
]
