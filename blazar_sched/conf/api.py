# SPDX-License-Identifier: Apache-2.0
"""Group ``api``: where the REST API listens and whom it believes."""

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
        default='noauth',
        choices=[
            ('noauth', 'believe the token, ``user:project``; refused unless '
             '``host`` is a loopback address'),
            ('keystone', 'ask Keystone, see [keystone_authtoken]'),
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
        'max_request_body_size',
        default=114688,
        min=1024,
        help='Bytes of the largest request body that is read.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
