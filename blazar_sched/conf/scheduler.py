# SPDX-License-Identifier: Apache-2.0
"""Group ``blazar_sched`` in nova.conf: options of nova-scheduler's workers.

The options are registered on Nova's own configuration when the filters or
weighers are imported. The filter in nova-api reads the default lifetimes.
"""

from typing import Any

from oslo_config import cfg

from blazar_sched.domain.duration import parse_duration
from blazar_sched.domain.duration import parse_unbounded

GROUP = 'blazar_sched'

opts = [
    cfg.StrOpt(
        'transport_url',
        secret=True,
        help='The message bus on which the blazar-sched manager listens, as '
        "in oslo.messaging. By default nova-scheduler's own.",
    ),
    cfg.FloatOpt(
        'poll_interval',
        default=5.0,
        min=0.01,
        help="Seconds between two looks at the ledger's newest revision. The "
        'manager tells of a new one at once, so this only bounds what a lost '
        'message costs.',
    ),
    cfg.IntOpt(
        'max_age',
        default=120,
        min=1,
        help='Seconds without word from the ledger after which a replica is '
        'stale. See ``on_stale``.',
    ),
    cfg.StrOpt(
        'on_stale',
        default='closed',
        choices=[
            ('closed', 'no instance goes to a host known to be reservable'),
            ('open', 'every host passes, as if there were no leases'),
        ],
        help='What the filters answer while the replica is stale or missing, '
        'and after an error of their own. Hosts that are not reservable pass '
        'in any case, unless the request names a reservation.',
    ),
    cfg.StrOpt(
        'on_unknown_hosts',
        default='open',
        choices=[
            ('open', 'every host passes, unless the request names a '
             'reservation'),
            ('closed', 'no host passes, reservable or not'),
        ],
        help='What ``on_stale = closed`` means to a worker that does not know '
        'which hosts are reservable: it has no copy of the ledger, and no '
        'list of the hosts beside ``snapshot_path``. That is so until the '
        'first manager has answered on this node. ``closed`` shuts the whole '
        'cloud meanwhile.',
    ),
    cfg.FloatOpt(
        'start_timeout',
        default=10.0,
        min=0,
        help="Seconds from a worker's start for which requests wait for its "
        'first copy of the ledger, from the snapshot file or from a manager. '
        'Then ``on_stale`` decides until there is one.',
    ),
    cfg.StrOpt(
        'unbounded',
        default='forever',
        help='What is asked of a reservable host before it takes an instance '
        'that declares no end: ``forever``, room for ever; '
        '``assume:<duration>``, room for that long (``assume:2h``); '
        '``never``, the host does not take it. A host may have a policy of '
        'its own.',
    ),
    cfg.StrOpt(
        'default_lifetime',
        default='',
        help='The lifetime of an instance that declares none, as a duration '
        '(``90s``, ``15m``, ``2h``, ``1d``, ``1w``). Empty: it is unbounded.',
    ),
    cfg.DictOpt(
        'project_default_lifetimes',
        default={},
        help='The same for some projects: ``<project id>:<duration>``, …',
    ),
    cfg.IntOpt(
        'max_backfill_lifetime',
        default=0,
        min=0,
        help='The longest lifetime, in seconds, that is let on reservable '
        'hosts outside a reservation. 0: any.',
    ),
    cfg.IntOpt(
        'shelving_time',
        default=600,
        min=1,
        help='Seconds within which a server that is to start later '
        '(``lease_start``) has been built, and shelved off its host until '
        'then. That is its lifetime on a reservable host before its start, '
        'and ``max_backfill_lifetime`` holds for it. Shelving stores an image '
        'of the server: large disks need more time.',
    ),
    cfg.IntOpt(
        'min_preemptible_runtime',
        default=300,
        min=1,
        help='Seconds that a preemptible instance must be able to run before '
        'its room is needed.',
    ),
    cfg.IntOpt(
        'pending_ttl',
        default=60,
        min=0,
        help='Seconds for which a worker counts an instance that it has '
        'placed itself and has not heard of since.',
    ),
    cfg.BoolOpt(
        'narrow_placement',
        default=False,
        help='Whether Placement is asked only for the hosts of a '
        'reservation of whole hosts, where a request names one. They are '
        'found by its aggregate, which Nova has to mirror to Placement.',
    ),
    cfg.StrOpt(
        'snapshot_path',
        default='$state_path/blazar-sched.snapshot',
        help='File in which the last copy of the ledger is kept, so that a '
        'new worker can decide at once, also while the manager is down. '
        'Beside it, in a file whose name ends in ``.hosts``, the reservable '
        'hosts are listed, for a worker that cannot use the copy. Empty: '
        'neither is kept.',
    ),
    cfg.IntOpt(
        'decisions_kept',
        default=200,
        min=0,
        help='How many of its last decisions each worker can still explain, '
        'to ``blazar-sched why``. A decision takes one byte for each host '
        'that it was about, and 100 bytes for each whose use has changed '
        'since the decision before. 0: none.',
    ),
    cfg.StrOpt(
        'metrics_path',
        default='',
        help="Directory in which each worker keeps a file of its metrics, for "
        "the textfile collector of Prometheus's node_exporter. Those of "
        'workers that are gone are removed. Empty: none is written.',
    ),
    cfg.FloatOpt(
        'lease_gap_weight_multiplier',
        default=1.0,
        help='How much LeaseGapWeigher counts. Positive: a bounded instance '
        'goes where the gap before the next lease is the tightest for it, an '
        'unbounded one where the next lease is the farthest. Negative: the '
        'opposite. 0: not at all. An aggregate may override it by metadata.',
    ),
    cfg.FloatOpt(
        'vacate_cost_weight_multiplier',
        default=1.0,
        help='How much VacateCostWeigher counts. Positive: a preemptible '
        'instance goes where the least memory of others like it has to go '
        'for the next lease. 0: not at all. An aggregate may override it by '
        'metadata.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)


def check(conf: cfg.ConfigOpts) -> None:
    """Read every option, so that an invalid option stops Nova from starting.

    :raises InvalidInput: if a policy or a duration cannot be read
    :raises ValueError: if another option has no usable value
    """
    options = conf[GROUP]
    for opt in opts:
        getattr(options, opt.dest)
    parse_unbounded(options.unbounded, 'unbounded')
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
