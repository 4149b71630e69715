# SPDX-License-Identifier: Apache-2.0
"""The options of the webhooks of projects, in groups of the core.

The URLs of the webhooks of projects are called at public addresses only, as
the service would otherwise call whatever address it can reach.
"""

from oslo_config import cfg

from blazar_sched.conf import email
from blazar_sched.conf import webhook

OPTIONS = {
    webhook.GROUP: [cfg.ListOpt(
        'allowed_networks', default=[],
        help='Networks, as ``10.1.0.0/16``, to whose addresses the webhooks '
        'of projects may send although the addresses are not public. Anyone '
        'who may create a webhook can have requests sent to these networks.',
    )],
    email.GROUP: [cfg.ListOpt(
        'allowed_domains', default=[],
        help='Domains, as ``example.org``, to whose addresses the webhooks of '
        'projects may send messages. Anyone who may create a webhook can have '
        'messages about leases sent to any address of these domains. If it is '
        'empty, or ``smtp_host`` is not set, no webhook sends messages.',
    )],
}
