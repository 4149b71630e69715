# SPDX-License-Identifier: Apache-2.0
"""Groups ``email`` and ``webhook``: who is told of leases, and how.

The URLs of the webhooks of projects are called at public addresses only, as
the service would otherwise call whatever address it can reach.
"""

from oslo_config import cfg

EMAIL, WEBHOOK = 'email', 'webhook'

OPTIONS = {
    EMAIL: [
        cfg.HostAddressOpt(
            'smtp_host',
            help='Host name or IP address of the SMTP server. If it is not '
            'set, the API rejects reservations with ``before_end`` set to '
            '``email``.',
        ),
        cfg.PortOpt(
            'smtp_port', default=25, help='TCP port of the SMTP server.'
        ),
        cfg.StrOpt(
            'from_address', default='blazar-sched@localhost',
            help='Sender address of the e-mail messages.',
        ),
        cfg.BoolOpt(
            'starttls', default=False,
            help='Whether the connection to the SMTP server must use '
            'STARTTLS. If so, the server certificate must be valid for '
            '``smtp_host`` and be signed by a CA that this machine trusts.',
        ),
        cfg.StrOpt(
            'username',
            help='User name for the login to the SMTP server. If it is not '
            'set, messages are sent without a login. Unless ``starttls`` is '
            'set, the password is sent unencrypted.',
        ),
        cfg.StrOpt(
            'password', default='', secret=True,
            help='Password for the login to the SMTP server. Only used if '
            '``username`` is set.',
        ),
        cfg.FloatOpt(
            'timeout', default=10.0, min=0.1,
            help='Seconds to wait for each response of the SMTP server. If '
            'none arrives, the event is retried; see [manager] '
            'event_max_retries.',
        ),
        cfg.ListOpt(
            'allowed_domains', default=[],
            help='Domains, as ``example.org``, to whose addresses the '
            'webhooks of projects may send messages. Anyone who may create a '
            'webhook can have messages about leases sent to any address of '
            'these domains. If it is empty, or ``smtp_host`` is not set, no '
            'webhook sends messages.',
        ),
    ],
    WEBHOOK: [
        cfg.URIOpt(
            'url', schemes=['http', 'https'],
            help='URL to which a lease is sent by HTTP POST once it has '
            'started, or before its end, in the format of the notification '
            'lease.event.before_end_lease, with the type of the event in '
            '``event_type``. If it is not set, the API rejects reservations '
            'with ``on_start`` or ``before_end`` set to ``webhook``.',
        ),
        cfg.StrOpt(
            'secret', default='', secret=True,
            help='Key of the HMAC-SHA256 of the request body, which is sent '
            'in hexadecimal in the header X-Signature. Empty disables the '
            'header.',
        ),
        cfg.FloatOpt(
            'timeout', default=10.0, min=0.1,
            help='Seconds to wait for a response of a URL, or of the webhook '
            'of a project. If none arrives, the request is repeated; see '
            '[manager] event_max_retries for the event before the end of a '
            'lease.',
        ),
        cfg.ListOpt(
            'allowed_networks', default=[],
            help='Networks, as ``10.1.0.0/16``, to whose addresses the '
            'webhooks of projects may send although the addresses are not '
            'public. Anyone who may create a webhook can have requests sent '
            'to these networks.',
        ),
    ],
}
