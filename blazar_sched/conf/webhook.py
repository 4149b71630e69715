# SPDX-License-Identifier: Apache-2.0
"""Group ``webhook``: the receiver of notices that a lease is about to end.

Only the operator sets the URL: with a URL of a user, the service would call
whatever address it can reach.
"""

from oslo_config import cfg

GROUP = 'webhook'

opts = [
    cfg.URIOpt(
        'url',
        schemes=['http', 'https'],
        help='Where the lease is sent by POST, as in its notification '
        'lease.event.before_end_lease. Without it no reservation can ask for '
        '``before_end`` webhook.',
    ),
    cfg.StrOpt(
        'secret',
        default='',
        secret=True,
        help='The key of the HMAC-SHA256 of the body that is sent as '
        'X-Signature, in hexadecimal; without it none is.',
    ),
    cfg.FloatOpt(
        'timeout',
        default=10.0,
        min=0.1,
        help='Seconds that the URL may be silent.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
