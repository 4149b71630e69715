# SPDX-License-Identifier: Apache-2.0
"""The options of the limits, and of what leases do not use."""

from collections.abc import Callable
import math

import os_resource_classes as orc
from oslo_config import cfg
from oslo_config import types

from blazar_sched.conf import manager
from blazar_sched.conf.enforcement import CUSTOM
from blazar_sched.conf.enforcement import exempt
from blazar_sched.conf.enforcement import GROUP
from blazar_sched.conf.enforcement import limit


class _ByResourceClass(types.Dict):
    """Numbers from 0 on by resource class, as in ``VCPU:8,CUSTOM_GPU:1``.

    :param number: returns the number of a text
    """

    def __init__(self, number: Callable[[str], float]) -> None:
        super().__init__()
        self._number = number

    def __call__(self, value: str | dict[str, float]) -> dict[str, float]:
        if isinstance(value, dict):
            return value
        numbers: dict[str, float] = {}
        for each in filter(None, map(str.strip, value.split(','))):
            name, _, text = each.partition(':')
            name = name.strip()
            if name not in orc.STANDARDS and not CUSTOM.fullmatch(name):
                raise ValueError(f'{each}: {name} is not a resource class')
            if name in numbers:
                raise ValueError(f'{name} is named twice')
            try:
                numbers[name] = self._number(text.strip())
            except ValueError as e:
                raise ValueError(f'{each}: {e}') from e
        return numbers


def _amount(text: str) -> int:
    amount = int(text)
    if amount < 0:
        raise ValueError('an amount is not negative')
    return amount


def _weight(text: str) -> float:
    weight = float(text)
    if not 0 <= weight < math.inf:
        raise ValueError('a weight is neither negative nor infinite')
    return weight


def _resources(name: str, of: str) -> cfg.Opt:
    return cfg.Opt(
        name, type=_ByResourceClass(_amount), default={}, mutable=True,
        help=f'Maximum amounts that {of} may reserve, by resource class, '
        'as in ``CUSTOM_GPU:8,VCPU:500``. Instances count with the amounts '
        'of their size or flavor, and a whole host counts with all of its '
        'inventory. A class that is not named has no limit. Used by '
        'MaxResourcesFilter.',
    )


# The actions on a lease that is not used in full.
NOTIFY, SHRINK, END = 'notify', 'shrink', 'end'

OPTIONS = {GROUP: [
    cfg.IntOpt(
        'unified_limits_interval', default=0, min=0,
        help='Seconds between two looks at the unified limits of Keystone, '
        'which apply in place of the options of the filters; 0 does without '
        'them. A limit has the name of the option, such as '
        '``max_leases_per_project``, or, for a resource class, '
        '``max_resources_per_project:VCPU``. The option applies where '
        'Keystone has no limit of the name. The user of [keystone] needs the '
        'role ``reader`` in the scope ``system``.',
    ),
    limit(
        'max_leases_per_project',
        'Maximum number of leases of a project that are not over. Used by '
        'MaxLeasesFilter.',
    ),
    exempt('max_leases', 'MaxLeasesFilter'),
    limit(
        'max_hosts_per_lease',
        'Maximum number of whole hosts in a lease: the sum of ``max`` over '
        'the host reservations of the lease. Used by MaxSizeFilter.',
    ),
    limit(
        'max_instances_per_lease',
        'Maximum number of instances in a lease: the sum of ``amount`` over '
        'the instance reservations of the lease. Used by MaxSizeFilter.',
    ),
    limit(
        'max_hosts_per_project',
        'Maximum total number of whole hosts in the leases of a project that '
        'are not over, counted as for ``max_hosts_per_lease``. Used by '
        'MaxSizeFilter.',
    ),
    limit(
        'max_instances_per_project',
        'Maximum total number of instances in the leases of a project that '
        'are not over, counted as for ``max_instances_per_lease``. Used by '
        'MaxSizeFilter.',
    ),
    exempt('max_size', 'MaxSizeFilter'),
    _resources('max_resources_per_lease', 'a lease'),
    _resources(
        'max_resources_per_project',
        'the leases of a project that are not over, taken together,',
    ),
    cfg.Opt(
        'resource_weights', type=_ByResourceClass(_weight), default={},
        mutable=True,
        help='Weight of a unit of each resource class, as in '
        '``CUSTOM_GPU:10,VCPU:0.1``. The weight of a lease is the sum of its '
        'amounts, counted as for ``max_resources_per_lease``, times the '
        'weights. A class that is not named has no weight. Used by '
        'MaxResourcesFilter.',
    ),
    limit(
        'max_weight_per_lease',
        'Maximum weight of a lease, by ``resource_weights``. Used by '
        'MaxResourcesFilter.',
    ),
    limit(
        'max_weight_per_project',
        'Maximum total weight of the leases of a project that are not over. '
        'Used by MaxResourcesFilter.',
    ),
    limit(
        'max_weight_hours_per_project',
        'Maximum total of weight times hours of the leases of a project that '
        'are not over. The hours of a lease are those from its start to its '
        'end; if a limit is set, a lease that weighs anything must have an '
        'end. Used by MaxResourcesFilter.',
    ),
    cfg.IntOpt(
        'max_weight_hours_days', default=0, min=0, mutable=True,
        help='Days for which the hours that were reserved count in '
        '``max_weight_hours_per_project``, to the second, beside the '
        'hours to come: a budget over a sliding window, for which the part '
        '``report`` has to run. 0 counts only the leases that are not over, '
        'with all of their hours.',
    ),
    cfg.URIOpt(
        'external_service_base_endpoint', schemes=['http', 'https'],
        help='Base URL of the external service that ExternalServiceFilter '
        'calls, at the paths /check-create, /check-update and /on-end.',
    ),
    cfg.BoolOpt(
        'external_service_commits', default=False,
        help='Whether the external service is also called at the paths '
        '/create and /update, after a lease was created or updated.',
    ),
    cfg.StrOpt(
        'external_service_token', default='', secret=True,
        help='Token that is sent to the external service in the header '
        'X-Auth-Token.',
    ),
    cfg.StrOpt(
        'external_service_bearer_token', default='', secret=True,
        help='Token that is sent to the external service as a bearer token, '
        'in the header Authorization. It is not sent if '
        '``external_service_token`` is set.',
    ),
], manager.GROUP: [
    cfg.IntOpt(
        'unused_after', default=0, min=0, mutable=True,
        help='Seconds after the start of a lease from which on its '
        'reservations of hosts and instances are to be used by servers: the '
        'notification ``lease.unused`` is sent for a lease that is not used '
        'in full then. A lease is checked for one day. 0 disables the check.',
    ),
    cfg.IntOpt(
        'unused_notice', default=1800, min=0, mutable=True,
        help='Seconds from the notification ``lease.unused`` to the action '
        '``on_unused``.',
    ),
    cfg.StrOpt(
        'on_unused', default=NOTIFY, choices=(NOTIFY, SHRINK, END),
        mutable=True,
        help='Action on a lease that is not used in full: ``notify`` does no '
        'more than the notification; ``end`` ends a lease that has no server '
        'at all; ``shrink`` also gives back the hosts without servers, and '
        'the instances that do not exist, of any other lease. Only used with '
        '``unused_after``.',
    ),
]}
