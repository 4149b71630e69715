# SPDX-License-Identifier: Apache-2.0
"""Options of relocation, equal in nova.conf and in the manager's file.

nova-scheduler decides by these options which hosts an instance may use, and
the manager plans and makes the moves. The options are in the group
``blazar_sched`` of nova.conf, and in the group ``manager`` of the manager's
file.
"""

from typing import Any

from oslo_config import cfg

from blazar_sched.domain.instance import MAX_STAYS
from blazar_sched.domain.relocation import LARGE_VCPUS
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.way import NOT
from blazar_sched.domain.way import read_way

_DEFAULTS = Rules()
_SAME = ' Must be equal in nova.conf and in the configuration of the manager.'

opts = [
    cfg.IntOpt(
        'relocation_lead',
        default=_DEFAULTS.lead,
        min=1,
        help='Seconds before the start of a reservation at which the manager '
        'begins to migrate an instance that must leave the host. The '
        'migration of the largest instance must take less than half of this '
        'time.' + _SAME,
    ),
    cfg.IntOpt(
        'relocation_moves',
        default=_DEFAULTS.most_moves,
        min=1,
        max=MAX_STAYS - 1,
        help='Maximum number of moves that are planned for an instance.'
        + _SAME,
    ),
    cfg.IntOpt(
        'relocation_shortest_stay',
        default=_DEFAULTS.shortest_stay,
        min=1,
        help='Minimum number of seconds before the next reservation for '
        'which an instance is started on a host that it must leave.' + _SAME,
    ),
    cfg.IntOpt(
        'relocation_notice',
        default=_DEFAULTS.notice,
        min=0,
        help='Seconds from now on for which no headroom is kept. Set this to '
        'the shortest time between the request for a lease and the start of '
        'the lease. This option also decides which instances with an end are '
        'too short-lived to be moved: those that end within so many seconds '
        'after their creation. 0 means that headroom is kept at all times, '
        'and that every instance may be moved.' + _SAME,
    ),
    cfg.FloatOpt(
        'relocation_headroom',
        default=_DEFAULTS.headroom,
        min=0,
        max=1,
        help='Share of the capacity of all reservable hosts that instances '
        'outside of reservations leave free where instances are relocated, so '
        'that new leases find room. ``blazar-sched simulate --suggest`` shows '
        'the cost of several values.' + _SAME,
    ),
    cfg.FloatOpt(
        'relocation_large_headroom',
        default=_DEFAULTS.large_headroom,
        min=0,
        max=1,
        help=f'The same for instances with {LARGE_VCPUS} VCPUs or more. '
        'A value below ``relocation_headroom`` has no effect.' + _SAME,
    ),
    cfg.IntOpt(
        'relocation_memory_mb',
        default=_DEFAULTS.most_memory_mb,
        min=0,
        help='Memory in MB above which the kind ``memory`` of '
        '``relocation_ways`` decides how an instance is moved. 0 means no '
        'limit.' + _SAME,
    ),
    cfg.DictOpt(
        'relocation_ways',
        default={},
        help='How instances are moved by what they have, as items '
        '``<kind>:live`` (by live migration), ``<kind>:cold`` (by cold '
        'migration: the instance is stopped meanwhile) or ``<kind>:no``. '
        'Kinds are ``disk`` (a disk on the host), ``device`` (PCI devices by '
        'alias), ``cpu`` (dedicated or real-time CPUs), ``encryption`` '
        '(encrypted memory), ``memory`` (see ``relocation_memory_mb``) and '
        'resource classes beside VCPU, MEMORY_MB and DISK_GB, such as '
        '``VGPU`` and ``PCPU``. A kind without an item is not moved; of '
        'several kinds the one that allows least decides. The flavor extra '
        'spec ``blazar:movable`` overrides all kinds but ``memory``.' + _SAME,
    ),
    cfg.IntOpt(
        'relocation_cold_notice',
        default=_DEFAULTS.cold_notice,
        min=0,
        help='Seconds before the last possible start of a cold migration at '
        'which the owner of the instance is notified, by ``blazar_move_at`` '
        'in the metadata of the instance. The owner may set this to any time '
        'up to the last possible start, which is ``relocation_lead`` before '
        'the reservation.' + _SAME,
    ),
]


def rules(options: Any) -> Rules:
    """Return the rules that the options of a group set."""
    return Rules(
        lead=options.relocation_lead,
        most_moves=options.relocation_moves,
        shortest_stay=options.relocation_shortest_stay,
        notice=options.relocation_notice,
        headroom=options.relocation_headroom,
        large_headroom=options.relocation_large_headroom,
        most_memory_mb=options.relocation_memory_mb,
        ways={
            kind: read_way(text) or NOT
            for kind, text in options.relocation_ways.items()
        },
        cold_notice=options.relocation_cold_notice,
    )
