# SPDX-License-Identifier: Apache-2.0
"""Group ``api``: the address of the REST API and its authentication."""

from oslo_config import cfg

GROUP = 'api'

opts = [
    cfg.HostAddressOpt(
        'host', default='127.0.0.1',
        help='IP address or host name on which the REST API listens.',
    ),
    cfg.PortOpt(
        'port', default=1234,
        help='TCP port on which the REST API listens. 0 lets the operating '
        'system choose a free port.',
    ),
    cfg.StrOpt(
        'auth_strategy', default='keystone',
        choices=[
            (
                'keystone',
                'validate tokens with Keystone, as set in '
                '[keystone_authtoken]',
            ),
            (
                'noauth',
                'trust a token of the form ``user:project`` without '
                'validation; the user ``admin`` has the role admin. Only for '
                'tests on one machine: the API starts only if ``host`` is a '
                'loopback address, and rejects requests that a proxy has '
                "forwarded or a web page other than the API's own has sent",
            ),
        ],
        help='Method by which the API authenticates its callers.',
    ),
    cfg.BoolOpt(
        'use_trusts', default=True,
        help='Whether the service creates a Keystone trust for each new '
        'lease. With a trust, the service can act for the user who created '
        'the lease after the token of that user has expired. This option has '
        'no effect unless ``auth_strategy`` is ``keystone`` and [keystone] '
        'is configured. See also [keystone] trust_roles.',
    ),
    cfg.IntOpt(
        'threads', default=16, min=1,
        help='Maximum number of requests that the API processes at the same '
        'time. Further requests wait for a free thread. A quarter of the '
        'threads may be used by requests that wait until a lease has a '
        'status, half of these by requests of one project.',
    ),
    cfg.IntOpt(
        'max_connections', default=10000, min=1,
        help='Maximum number of open client connections. Further connections '
        'wait until an open connection is closed. Each connection needs a '
        'file descriptor: the API raises the soft limit of its open files '
        'accordingly, as far as the hard limit permits.',
    ),
    cfg.IntOpt(
        'max_request_body_size', default=114688, min=1024,
        help='Maximum size of a request body, in bytes. The API rejects '
        'larger bodies.',
    ),
]
