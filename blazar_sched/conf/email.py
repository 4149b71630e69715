# SPDX-License-Identifier: Apache-2.0
"""Group ``email``: messages to the creator of a lease before its end."""

from oslo_config import cfg

GROUP = 'email'

opts = [
    cfg.HostAddressOpt(
        'smtp_host',
        help='The mail server. Without it no reservation can ask for '
        '``before_end`` email.',
    ),
    cfg.PortOpt(
        'smtp_port',
        default=25,
        help='Its port.',
    ),
    cfg.StrOpt(
        'from_address',
        default='blazar-sched@localhost',
        help='The address that messages are from.',
    ),
    cfg.BoolOpt(
        'starttls',
        default=False,
        help='Whether nothing is said to the mail server but by TLS, with a '
        'certificate for smtp_host that this machine trusts.',
    ),
    cfg.StrOpt(
        'username',
        help='Who we are to the mail server; without it there is no login. '
        'Without starttls the password goes in the clear.',
    ),
    cfg.StrOpt(
        'password',
        default='',
        secret=True,
        help='The password of username.',
    ),
    cfg.FloatOpt(
        'timeout',
        default=10.0,
        min=0.1,
        help='Seconds that the mail server may be silent.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
