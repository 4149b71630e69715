# SPDX-License-Identifier: Apache-2.0
"""Options of enforcement: limits of a project, regardless of free room.

The options of a filter apply while the filter is in ``enabled_filters``. The
names are Blazar's where Blazar has the filter.
"""

from oslo_config import cfg

GROUP = 'enforcement'

_NO_LIMIT = ' -1 means no limit.'


def _limit(name: str, text: str) -> cfg.IntOpt:
    return cfg.IntOpt(
        name, default=-1, min=-1, mutable=True, help=text + _NO_LIMIT
    )


def _exempt(prefix: str, filter_: str) -> cfg.ListOpt:
    return cfg.ListOpt(
        f'{prefix}_exempt_project_ids',
        default=[],
        mutable=True,
        help=f'IDs of the projects that are exempt from {filter_}.',
    )


def _endpoint(name: str, path: str) -> cfg.URIOpt:
    return cfg.URIOpt(
        f'external_service_{name}_endpoint',
        schemes=['http', 'https'],
        help=f'URL that is called in place of {path} under '
        '``external_service_base_endpoint``. If it is not set, the path '
        'under the base endpoint is called.',
    )


opts = [
    cfg.ListOpt(
        'enabled_filters',
        default=[],
        help='Enforcement filters that every new and every updated lease must '
        'pass, in the order of their application. The filters of this '
        'package are MaxLeaseDurationFilter, MaxHorizonFilter, '
        'MaxLeasesFilter, MaxSizeFilter and ExternalServiceFilter. Other '
        'packages can provide filters as entry points of the group '
        '``blazar_sched.enforcement``. The other options of this group only '
        'have an effect if the filter that they belong to is enabled.',
    ),
    _limit(
        'max_lease_duration',
        'Maximum duration of a lease, in seconds. Used by '
        'MaxLeaseDurationFilter.',
    ),
    _exempt('max_lease_duration', 'MaxLeaseDurationFilter'),
    _limit(
        'max_start_horizon',
        'Maximum time from now to the start of a lease, in seconds. Used by '
        'MaxHorizonFilter.',
    ),
    _limit(
        'max_end_horizon',
        'Maximum time from now to the end of a lease, in seconds. If a limit '
        'is set, a lease must have an end. Used by MaxHorizonFilter.',
    ),
    _exempt('max_horizon', 'MaxHorizonFilter'),
    _limit(
        'max_leases_per_project',
        'Maximum number of leases of a project that are not over. Used by '
        'MaxLeasesFilter.',
    ),
    _exempt('max_leases', 'MaxLeasesFilter'),
    _limit(
        'max_hosts_per_lease',
        'Maximum number of whole hosts in a lease: the sum of ``max`` over '
        'the host reservations of the lease. Used by MaxSizeFilter.',
    ),
    _limit(
        'max_instances_per_lease',
        'Maximum number of instances in a lease: the sum of ``amount`` over '
        'the instance reservations of the lease. Used by MaxSizeFilter.',
    ),
    _limit(
        'max_hosts_per_project',
        'Maximum total number of whole hosts in the leases of a project that '
        'are not over, counted as for ``max_hosts_per_lease``. Used by '
        'MaxSizeFilter.',
    ),
    _limit(
        'max_instances_per_project',
        'Maximum total number of instances in the leases of a project that '
        'are not over, counted as for ``max_instances_per_lease``. Used by '
        'MaxSizeFilter.',
    ),
    _exempt('max_size', 'MaxSizeFilter'),
    cfg.URIOpt(
        'external_service_base_endpoint',
        schemes=['http', 'https'],
        help='Base URL of the external service that ExternalServiceFilter '
        'calls, at the paths /check-create, /check-update and /on-end.',
    ),
    _endpoint('check_create', '/check-create'),
    _endpoint('check_update', '/check-update'),
    _endpoint('on_end', '/on-end'),
    cfg.StrOpt(
        'external_service_token',
        default='',
        secret=True,
        help='Token that is sent to the external service in the header '
        'X-Auth-Token.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
