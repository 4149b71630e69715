# SPDX-License-Identifier: Apache-2.0
"""Options of enforcement: limits of a project, regardless of free room.

The options of a filter apply while the filter is in ``enabled_filters``. The
names are Blazar's where Blazar has the filter.
"""

import re

from oslo_config import cfg

GROUP = 'enforcement'

# The names of resource classes beside the standard ones.
CUSTOM = re.compile('CUSTOM_[A-Z0-9_]+')
_NO_LIMIT = ' -1 means no limit.'


def limit(name: str, text: str, default: int = -1) -> cfg.IntOpt:
    return cfg.IntOpt(
        name, default=default, min=-1, mutable=True, help=text + _NO_LIMIT
    )


def exempt(prefix: str, filter_: str) -> cfg.ListOpt:
    return cfg.ListOpt(
        f'{prefix}_exempt_project_ids', default=[], mutable=True,
        help=f'IDs of the projects that are exempt from {filter_}.',
    )


opts = [
    cfg.ListOpt(
        'enabled_filters', default=['MaxHorizonFilter', 'MaxResourcesFilter'],
        help='Enforcement filters that every new and every updated lease must '
        'pass, in the order of their application. The filters of this '
        'package are MaxLeaseDurationFilter, MaxHorizonFilter and '
        'MaxResourcesFilter, and, where the part ``limit`` runs, '
        'MaxLeasesFilter, MaxSizeFilter and ExternalServiceFilter. Other '
        'packages can provide filters as entry points of the group '
        '``blazar_sched.enforcement``. The other options of this group only '
        'have an effect if the filter that they belong to is enabled.',
    ),
    cfg.ListOpt(
        'approval_filters', default=[],
        help='Those of ``enabled_filters`` whose limits an administrator can '
        'lift for a single lease. The room of a lease that such a filter '
        'refuses can be held as an offer, within ``[manager] '
        'max_held_offers`` and ``max_offer_hold``, and the offer can be '
        'accepted once an administrator has approved the offer. These filters '
        'are applied after the others. ExternalServiceFilter cannot be named.',
    ),
    limit(
        'max_lease_duration',
        'Maximum duration of a lease, in seconds. Used by '
        'MaxLeaseDurationFilter.',
    ),
    exempt('max_lease_duration', 'MaxLeaseDurationFilter'),
    cfg.IntOpt(
        'min_start_lead', default=0, min=0, mutable=True,
        help='Minimum time from now to the start of a new lease, in seconds. '
        'The lease of a lease request or of a held offer may start that long '
        'after the request was made or the offer was held. Used by '
        'MaxHorizonFilter.',
    ),
    limit(
        'max_start_horizon',
        'Maximum time from now to the start of a lease, in seconds. Used by '
        'MaxHorizonFilter.',
        30 * 86400,
    ),
    limit(
        'max_end_horizon',
        'Maximum time from now to the end of a lease, in seconds. If a limit '
        'is set, a lease must have an end. Used by MaxHorizonFilter.',
    ),
    exempt('max_horizon', 'MaxHorizonFilter'),
    limit(
        'max_percent_per_project',
        'Maximum percentage of the VCPUs, and of the memory, of all '
        'reservable hosts that the leases of a project may reserve at one '
        'time. One host is always allowed. Used by MaxResourcesFilter.',
        50,
    ),
    exempt('max_resources', 'MaxResourcesFilter'),
]
