# SPDX-License-Identifier: Apache-2.0
"""Group ``api``: the address of the REST API and its authentication."""

from oslo_config import cfg

GROUP = 'api'

opts = [
    cfg.HostAddressOpt(
        'host',
        default='127.0.0.1',
        help='Address on which the API listens.',
    ),
    cfg.PortOpt(
        'port',
        default=1234,
        help='Port on which the API listens; 0: any free one.',
    ),
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('keystone', 'ask Keystone, see [keystone_authtoken]'),
            ('noauth', 'believe the token, ``user:project``, in which the '
             'user ``admin`` is an administrator: for tests on one machine. '
             'Refused unless ``host`` is a loopback address; requests are '
             'refused that came through a proxy or from a web page'),
        ],
        help='How callers are identified.',
    ),
    cfg.BoolOpt(
        'use_trusts',
        default=True,
        help="Whether a new lease gets a Keystone trust, so that it acts in "
        "its creator's name long after their token is gone; where "
        '``auth_strategy`` is keystone and [keystone] is configured.',
    ),
    cfg.IntOpt(
        'threads',
        default=16,
        min=1,
        help='Requests that are answered at the same time.',
    ),
    cfg.IntOpt(
        'max_connections',
        default=10000,
        min=1,
        help='Connections that are open at the same time; further ones wait. '
        'Each one takes an open file of the process: its soft limit is '
        'raised for that, where the hard limit lets it.',
    ),
    cfg.IntOpt(
        'connection_timeout',
        default=20,
        min=1,
        help='Seconds until a connection is closed that nothing is sent on, '
        'or on which a request has begun but has not arrived whole.',
    ),
    cfg.IntOpt(
        'max_request_body_size',
        default=114688,
        min=1024,
        help='Bytes of the largest request body that is read.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
