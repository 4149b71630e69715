# SPDX-License-Identifier: Apache-2.0
"""Options of relocation, and of instances without an end.

The options are in the group ``manager``. The manager plans and makes the moves
by them, and tells them to nova-scheduler, which decides by them which hosts an
instance may use.
"""

from collections.abc import Callable
from typing import Any

from oslo_config import cfg
from oslo_config import types

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.instance import MAX_STAYS
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.settings import Settings
from blazar_sched.domain.way import NOT
from blazar_sched.domain.way import read_way

_DEFAULTS = Rules()


class _Rule(types.String):
    """A rule for instances without an end, which `parse` reads."""

    def __init__(self, parse: Callable[[object, str], object]) -> None:
        super().__init__()
        self._parse = parse

    def __call__(self, value: object) -> str:
        try:
            self._parse(value, 'the rule')
        except exception.InvalidInput as e:
            raise ValueError(str(e)) from e
        return str(value)


opts = [
    cfg.Opt(
        'unbounded', type=_Rule(duration.parse_unbounded),
        default=duration.RELOCATE,
        help='Rule for instances without an end on reservable hosts: '
        '``relocate`` allows them where a later reservation needs the host, '
        'if other hosts have room from then on, to which the manager '
        'live-migrates the instance in time; ``forever`` allows them on a '
        'host without any later reservation; ``assume:<duration>``, such as '
        '``assume:2h``, treats them as instances with this lifetime, and so '
        'treats instances that declare a longer one; ``never`` rejects them. '
        'The ``unbounded`` setting of a host overrides this option. The '
        'managers tell nova-scheduler this option and those that follow.',
    ),
    cfg.Opt(
        'unbounded_fixed', type=_Rule(duration.parse_fixed),
        default=duration.FOREVER,
        help='Rule for instances without an end that cannot be moved, on '
        'hosts with ``unbounded = relocate``: ``forever``, ``never`` or '
        '``assume:<duration>``, as for ``unbounded``; or '
        '``share:<fraction>``, such as ``share:0.6``, which is ``forever`` as '
        'long as such instances together hold at most this share of what the '
        'reservable hosts have of each resource class, from '
        '``relocation_notice`` on, so that leases keep the rest. Under '
        '``share``, an instance with an end that lives longer than that '
        'counts too, and needs room until its own end.',
    ),
    cfg.BoolOpt(
        'relocate_instances', default=True,
        help='Whether the manager plans where instances go when a reservation '
        'needs their host, live-migrates the instances in time, and lets '
        'leases have hosts that can be cleared in this way. Unset this where '
        'no live migration is possible: all instances then follow '
        '``unbounded_fixed`` where ``unbounded`` is ``relocate``.',
    ),
    cfg.IntOpt(
        'relocation_lead', default=_DEFAULTS.lead, min=1,
        help='Seconds before the start of a reservation at which the manager '
        'begins to migrate an instance that must leave the host. The '
        'migration of the largest instance must take less than half of this '
        'time.',
    ),
    cfg.IntOpt(
        'relocation_moves', default=_DEFAULTS.most_moves, min=1,
        max=MAX_STAYS - 1,
        help='Maximum number of moves that are planned for an instance.',
    ),
    cfg.IntOpt(
        'relocation_shortest_stay', default=_DEFAULTS.shortest_stay, min=1,
        help='Minimum number of seconds before the next reservation for '
        'which an instance is started on a host that it must leave.',
    ),
    cfg.IntOpt(
        'relocation_notice', default=_DEFAULTS.notice, min=0,
        help='Seconds from now on for which no headroom is kept. Set this to '
        'the shortest time between the request for a lease and the start of '
        'the lease. This option also decides which instances with an end are '
        'too short-lived to be moved: those that end within so many seconds '
        'after their creation. 0 means that headroom is kept at all times, '
        'and that every instance may be moved.',
    ),
    cfg.FloatOpt(
        'relocation_headroom', default=_DEFAULTS.headroom, min=0, max=1,
        help='Share of the capacity of all reservable hosts that instances '
        'outside of reservations leave free where instances are relocated, so '
        'that new leases find room. ``blazar-sched simulate --suggest`` shows '
        'the cost of several values.',
    ),
    cfg.FloatOpt(
        'relocation_host_headroom', default=_DEFAULTS.host_headroom, min=0,
        max=1, deprecated_name='relocation_large_headroom',
        help='Share of the reservable hosts that instances that cannot be '
        'moved leave to leases of whole hosts: another host gets such an '
        'instance only if so many hosts have neither such an instance nor a '
        'lease of the whole host.',
    ),
    cfg.IntOpt(
        'relocation_memory_mb', default=_DEFAULTS.most_memory_mb, min=0,
        help='Memory in MB above which the kind ``memory`` of '
        '``relocation_ways`` decides how an instance is moved. 0 means no '
        'limit.',
    ),
    cfg.DictOpt(
        'relocation_ways', default={},
        help='How instances are moved by what they have, as items '
        '``<kind>:live`` (by live migration), ``<kind>:cold`` (by cold '
        'migration: the instance is stopped meanwhile) or ``<kind>:no``. '
        'Kinds are ``disk`` (a disk on the host), ``device`` (PCI devices by '
        'alias), ``cpu`` (dedicated or real-time CPUs), ``encryption`` '
        '(encrypted memory), ``memory`` (see ``relocation_memory_mb``) and '
        'resource classes beside VCPU, MEMORY_MB and DISK_GB, such as '
        '``VGPU`` and ``PCPU``. A kind without an item is not moved; of '
        'several kinds the one that allows least decides. The flavor extra '
        'spec ``blazar:movable`` overrides all kinds but ``memory``.',
    ),
    cfg.IntOpt(
        'relocation_cold_notice', default=_DEFAULTS.cold_notice, min=0,
        help='Seconds before the last possible start of a cold migration at '
        'which the owner of the instance is notified, by ``blazar_move_at`` '
        'in the metadata of the instance. The owner may set this to any time '
        'up to the last possible start, which is ``relocation_lead`` before '
        'the reservation.',
    ),
]


def rules(options: Any) -> Rules:
    """Return the rules that the options of a group set."""
    return Rules(
        lead=options.relocation_lead, most_moves=options.relocation_moves,
        shortest_stay=options.relocation_shortest_stay,
        notice=options.relocation_notice, headroom=options.relocation_headroom,
        host_headroom=options.relocation_host_headroom,
        most_memory_mb=options.relocation_memory_mb,
        ways={
            kind: read_way(text) or NOT
            for kind, text in options.relocation_ways.items()
        },
        cold_notice=options.relocation_cold_notice,
    )


def settings(options: Any) -> Settings:
    """Return what the managers tell nova-scheduler."""
    return Settings(
        options.unbounded, options.unbounded_fixed, options.relocate_instances,
        rules(options),
    )
