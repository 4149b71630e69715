# SPDX-License-Identifier: Apache-2.0
"""Group ``blazar_sched`` in nova.conf: options of nova-scheduler's workers.

The options are registered on Nova's own configuration when the filters or
weighers are imported. The filter in nova-api reads the default lifetimes.
"""

from typing import Any

from oslo_config import cfg

from blazar_sched.domain.duration import parse_duration

GROUP = 'blazar_sched'

opts = [
    cfg.StrOpt(
        'transport_url', secret=True,
        help='URL of the message bus on which the manager listens, in the '
        'format of oslo.messaging. If it is not set, [DEFAULT] transport_url '
        'of nova.conf is used.',
    ),
    cfg.FloatOpt(
        'poll_interval', default=5.0, min=0.01,
        help='Seconds between two queries for the newest revision of the '
        'ledger. The manager also sends a message about every new revision, '
        'so that this interval only matters if a message is lost.',
    ),
    cfg.IntOpt(
        'max_age', default=120, min=1,
        help='Maximum number of seconds for which a replica is used without a '
        'response from a manager. After that the replica is stale, and '
        '``on_stale`` applies. The value must be greater than '
        '``poll_interval``.',
    ),
    cfg.StrOpt(
        'on_stale', default='closed',
        choices=[
            (
                'closed',
                'hosts that are known to be reservable are rejected for every '
                'instance',
            ),
            ('open', 'all hosts pass, as if there were no leases'),
        ],
        help='Decision of the filters while the replica is stale or missing. '
        'Hosts that are not reservable always pass, unless the request names '
        'a reservation. After an unexpected error of a filter, the reservable '
        'hosts that could not be checked are rejected under either value. See '
        'also ``max_age`` and ``on_unknown_hosts``.',
    ),
    cfg.StrOpt(
        'on_unknown_hosts', default='open',
        choices=[
            ('open', 'all hosts pass, unless the request names a reservation'),
            ('closed', 'all hosts are rejected, whether reservable or not'),
        ],
        help='Decision of the filters under ``on_stale = closed`` while the '
        'reservable hosts are not known: the worker has neither a copy of '
        'the ledger nor the list of the hosts beside ``snapshot_path``. This '
        'is the case on a new node until a manager responds for the first '
        'time. With ``closed`` no instance can be created in the whole cloud '
        'during this time.',
    ),
    cfg.FloatOpt(
        'start_timeout', default=10.0, min=0,
        help='Seconds after the start of a worker for which requests wait for '
        'the first copy of the ledger from a manager; at most 2 seconds if '
        'the snapshot file has a copy. After that ``on_stale`` applies until '
        'there is a copy.',
    ),
    cfg.StrOpt(
        'default_lifetime', default='',
        help='Lifetime of instances that declare no end, as a duration '
        '(``90s``, ``15m``, ``2h``, ``1d``, ``1w``). Empty means that such '
        'instances have no end; see ``[manager] unbounded``.',
    ),
    cfg.DictOpt(
        'project_default_lifetimes', default={},
        help='Lifetime of instances that declare no end, by project: '
        '``<project id>:<duration>``, separated by commas. Overrides '
        '``default_lifetime`` for these projects.',
    ),
    cfg.IntOpt(
        'shelving_time', default=600, min=1,
        help='Seconds in which an instance with a later start '
        '(``lease_start``) must be built and shelved. It is treated as an '
        'instance with this lifetime until it is shelved. Shelving stores an '
        'image of the instance: raise this value if instances have large '
        'disks.',
    ),
    cfg.IntOpt(
        'min_preemptible_runtime', default=300, min=1,
        help='Minimum number of seconds for which a preemptible instance must '
        'be able to run before the next reservation needs its resources. '
        'A lower ``[manager] relocation_lead`` counts in its place where '
        'instances are relocated, and so does the end of an instance that '
        'declares an earlier one. '
        'Hosts on which the time is shorter are rejected, and so are hosts '
        'where the new instance, with the preemptible instances that are '
        'there, leaves too little for a reservation that begins within that '
        'time.',
    ),
    cfg.IntOpt(
        'pending_ttl', default=60, min=0,
        help='Maximum number of seconds for which a worker counts an instance '
        'that it or another worker has placed, and whose host Nova has not '
        'reported yet. Time in which no manager responds does not count. '
        'Raise this value if managers learn of new instances later than that. '
        '0 disables the count, and the announcement of '
        'placed instances to other workers and to the managers.',
    ),
    cfg.BoolOpt(
        'narrow_placement', default=False,
        help='Whether a request that names a reservation of whole hosts '
        'queries Placement only for the hosts of that reservation. Nova must '
        'mirror host aggregates to Placement, because the hosts are found by '
        'the aggregate of the reservation.',
    ),
    cfg.StrOpt(
        'snapshot_path', default='$state_path/blazar-sched.snapshot',
        help='Path of the file in which a worker stores its last copy of the '
        'ledger, so that a new worker can decide at once, even if no manager '
        'responds. A second file, with ``.hosts`` appended to its name, '
        'lists the reservable hosts for workers that cannot use the copy. '
        'Empty disables both files.',
    ),
    cfg.IntOpt(
        'decisions_kept', default=200, min=0,
        help='Number of recent decisions that each worker keeps for '
        '``blazar-sched why``. A decision needs one byte per host in the '
        'request, and 100 bytes per host whose usage has changed since the '
        'decision before. 0 disables the command.',
    ),
    cfg.StrOpt(
        'metrics_path', default='',
        help='Directory in which each worker writes a file with its metrics, '
        "for the textfile collector of Prometheus's node_exporter. Files of "
        'workers that no longer run are deleted. Empty disables the metrics.',
    ),
    cfg.FloatOpt(
        'lease_gap_weight_multiplier', default=1.0,
        help='Multiplier of the LeaseGapWeigher. With a positive value, an '
        'instance with an end prefers the host with the shortest sufficient '
        'gap before the next lease, and an instance without an end prefers '
        'the host with the latest next lease. A negative value reverses '
        'this; 0 disables the weigher. The metadata of a host aggregate can '
        'override this option.',
    ),
    cfg.FloatOpt(
        'vacate_cost_weight_multiplier', default=1.0,
        help='Multiplier of the VacateCostWeigher. With a positive value, a '
        'preemptible instance prefers the host on which the next lease '
        'requires the removal of the least memory of preemptible instances. '
        '0 disables the weigher. The metadata of a host aggregate can '
        'override this option.',
    ),
    cfg.FloatOpt(
        'device_weight_multiplier', default=1.0,
        help='Multiplier of the DeviceWeigher. With a positive value, an '
        'instance prefers hosts on which no device that the instance does '
        'not ask for is free while the instance is there, so that hosts with '
        'free GPUs, for example, are left to instances that ask for GPUs. '
        'Devices are resource classes other than VCPU, MEMORY_MB and DISK_GB. '
        '0 disables the weigher. The metadata of a host aggregate can '
        'override this option.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)


def check(conf: cfg.ConfigOpts) -> None:
    """Read every option, so that an invalid option stops Nova from starting.

    :raises InvalidInput: if a duration cannot be read
    :raises ValueError: if another option has no usable value
    """
    options = conf[GROUP]
    for opt in opts:
        getattr(options, opt.dest)
    for name, defaults in (
        ('default_lifetime', [options.default_lifetime]),
        (
            'project_default_lifetimes',
            options.project_default_lifetimes.values(),
        ),
    ):
        for duration in filter(None, defaults):
            parse_duration(duration, name)


def default_lifetime(options: Any, project_id: str | None) -> str:
    """Return the lifetime of a project's instances that declare no end.

    :param options: the options of the group
    :returns: a duration, '' for none
    """
    default: str = options.project_default_lifetimes.get(
        project_id, options.default_lifetime
    )
    return default


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options by group, for oslo-config-generator."""
    return [(GROUP, opts)]
