# SPDX-License-Identifier: Apache-2.0
"""Group ``blazar_sched`` in nova.conf: what nova-scheduler's workers read.

Registered on Nova's own configuration when the filters or weighers are
imported.
"""

from oslo_config import cfg

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
    cfg.IntOpt(
        'max_backfill_lifetime',
        default=0,
        min=0,
        help='The longest lifetime, in seconds, that is let on reservable '
        'hosts outside a reservation. 0: any.',
    ),
    cfg.IntOpt(
        'min_preemptible_runtime',
        default=300,
        min=1,
        help='Seconds that a preemptible instance must be able to run before '
        'its room is needed.',
    ),
    cfg.StrOpt(
        'snapshot_path',
        default='$state_path/blazar-sched.snapshot',
        help='File in which the last copy of the ledger is kept, so that a '
        'new worker can decide at once, also while the manager is down. '
        'Empty: none is kept.',
    ),
    cfg.FloatOpt(
        'lease_gap_weight_multiplier',
        default=1.0,
        help='How much LeaseGapWeigher counts. Positive: a bounded instance '
        'goes where the gap before the next lease is the tightest for it, an '
        'unbounded one where the next lease is the farthest. Negative: the '
        'opposite. 0: not at all. An aggregate may override it by metadata.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options by group, for oslo-config-generator."""
    return [(GROUP, opts)]
