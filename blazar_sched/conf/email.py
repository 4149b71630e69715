# SPDX-License-Identifier: Apache-2.0
"""Group ``email``: messages to people, such as the creator of a lease."""

from oslo_config import cfg

GROUP = 'email'

opts = [
    cfg.HostAddressOpt(
        'smtp_host',
        help='Host name or IP address of the SMTP server. If it is not set, '
        'the API rejects reservations with ``before_end`` set to ``email``.',
    ),
    cfg.PortOpt('smtp_port', default=25, help='TCP port of the SMTP server.'),
    cfg.StrOpt(
        'from_address', default='blazar-sched@localhost',
        help='Sender address of the e-mail messages.',
    ),
    cfg.BoolOpt(
        'starttls', default=False,
        help='Whether the connection to the SMTP server must use STARTTLS. If '
        'so, the server certificate must be valid for ``smtp_host`` and be '
        'signed by a CA that this machine trusts.',
    ),
    cfg.StrOpt(
        'username',
        help='User name for the login to the SMTP server. If it is not set, '
        'messages are sent without a login. Unless ``starttls`` is set, the '
        'password is sent unencrypted.',
    ),
    cfg.StrOpt(
        'password', default='', secret=True,
        help='Password for the login to the SMTP server. Only used if '
        '``username`` is set.',
    ),
    cfg.FloatOpt(
        'timeout', default=10.0, min=0.1,
        help='Seconds to wait for each response of the SMTP server. If none '
        'arrives, the event is retried; see [manager] event_max_retries.',
    ),
]
