# SPDX-License-Identifier: Apache-2.0
"""The options of held offers."""

from oslo_config import cfg

from blazar_sched.conf import manager

OPTIONS = {manager.GROUP: [
    cfg.IntOpt(
        'max_held_offers', default=5, min=0, mutable=True,
        help='Maximum number of offers that a project can hold at a time. '
        'No other lease gets the room of a held offer. 0 allows no offer to '
        'be held.',
    ),
    cfg.IntOpt(
        'max_offer_hold', default=3600, min=1, mutable=True,
        help='Maximum number of seconds for which an offer can be held.',
    ),
]}
