# SPDX-License-Identifier: Apache-2.0
"""Options of enforcement: limits of a project, regardless of free room.

The options of a filter apply while the filter is in ``enabled_filters``. The
names are Blazar's where Blazar has the filter.
"""

from oslo_config import cfg

GROUP = 'enforcement'

_NO_LIMIT = ' -1: no limit.'


def _limit(name: str, text: str) -> cfg.IntOpt:
    return cfg.IntOpt(
        name, default=-1, min=-1, mutable=True, help=text + _NO_LIMIT
    )


def _exempt(prefix: str, filter_: str) -> cfg.ListOpt:
    return cfg.ListOpt(
        f'{prefix}_exempt_project_ids',
        default=[],
        mutable=True,
        help=f'Projects that {filter_} never refuses.',
    )


def _endpoint(name: str, path: str) -> cfg.URIOpt:
    return cfg.URIOpt(
        f'external_service_{name}_endpoint',
        schemes=['http', 'https'],
        help=f'Where the external service is asked instead of at {path} '
        'of its base endpoint.',
    )


opts = [
    cfg.ListOpt(
        'enabled_filters',
        default=[],
        help='The filters that each new and each changed lease has to pass, '
        'in this order. There are MaxLeaseDurationFilter, MaxHorizonFilter, '
        'MaxLeasesFilter, MaxSizeFilter and ExternalServiceFilter; other '
        'packages add theirs by an entry point in blazar_sched.enforcement.',
    ),
    _limit('max_lease_duration', 'How many seconds a lease may last.'),
    _exempt('max_lease_duration', 'MaxLeaseDurationFilter'),
    _limit(
        'max_start_horizon',
        'How many seconds ahead of now a lease may start.',
    ),
    _limit(
        'max_end_horizon',
        'How many seconds ahead of now a lease may end; with a limit, it '
        'must have an end.',
    ),
    _exempt('max_horizon', 'MaxHorizonFilter'),
    _limit(
        'max_leases_per_project',
        'How many leases a project may have that are not over.',
    ),
    _exempt('max_leases', 'MaxLeasesFilter'),
    _limit(
        'max_hosts_per_lease',
        'How many whole hosts a lease may ask for: the ``max`` of its host '
        'reservations together.',
    ),
    _limit(
        'max_instances_per_lease',
        'How many instances a lease may ask for: the ``amount`` of its '
        'instance reservations together.',
    ),
    _limit(
        'max_hosts_per_project',
        'As max_hosts_per_lease, of all leases of a project that are not '
        'over.',
    ),
    _limit(
        'max_instances_per_project',
        'As max_instances_per_lease, of all leases of a project that are '
        'not over.',
    ),
    _exempt('max_size', 'MaxSizeFilter'),
    cfg.URIOpt(
        'external_service_base_endpoint',
        schemes=['http', 'https'],
        help='The URL of the service that ExternalServiceFilter asks, at '
        '/check-create, /check-update and /on-end.',
    ),
    _endpoint('check_create', '/check-create'),
    _endpoint('check_update', '/check-update'),
    _endpoint('on_end', '/on-end'),
    cfg.StrOpt(
        'external_service_token',
        default='',
        secret=True,
        help='What the external service is sent as X-Auth-Token.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
