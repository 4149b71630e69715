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
        help='URL to which a lease is sent by HTTP POST before its end, in '
        'the format of the notification lease.event.before_end_lease. If it '
        'is not set, the API rejects reservations with ``before_end`` set to '
        '``webhook``.',
    ),
    cfg.StrOpt(
        'secret',
        default='',
        secret=True,
        help='Key of the HMAC-SHA256 of the request body, which is sent in '
        'hexadecimal in the header X-Signature. Empty disables the header.',
    ),
    cfg.FloatOpt(
        'timeout',
        default=10.0,
        min=0.1,
        help='Seconds to wait for a response of the URL. If none arrives, the '
        'event is retried; see [manager] event_max_retries.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
