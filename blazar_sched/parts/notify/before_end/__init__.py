# SPDX-License-Identifier: Apache-2.0
"""The actions by which a lease is announced: see `service.before_end`."""

from blazar_sched.parts.notify.before_end.email import Email
from blazar_sched.parts.notify.before_end.webhook import Webhook

ACTIONS = {'email': Email, 'webhook': Webhook}
