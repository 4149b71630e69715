# SPDX-License-Identifier: Apache-2.0
"""Group ``webhook``: the receivers of notices."""

from oslo_config import cfg

GROUP = 'webhook'

opts = [
    cfg.URIOpt(
        'url', schemes=['http', 'https'],
        help='URL to which a lease is sent by HTTP POST once it has started, '
        'or before its end, in the format of the notification '
        'lease.event.before_end_lease, with the type of the event in '
        '``event_type``. If it is not set, the API rejects reservations with '
        '``on_start`` or ``before_end`` set to ``webhook``.',
    ),
    cfg.StrOpt(
        'secret', default='', secret=True,
        help='Key of the HMAC-SHA256 of the request body, which is sent in '
        'hexadecimal in the header X-Signature. Empty disables the header.',
    ),
    cfg.FloatOpt(
        'timeout', default=10.0, min=0.1,
        help='Seconds to wait for a response of a URL, or of the webhook of '
        'a project. If none arrives, the '
        'request is repeated; see [manager] event_max_retries for the event '
        'before the end of a lease.',
    ),
]
