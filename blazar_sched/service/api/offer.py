# SPDX-License-Identifier: Apache-2.0
"""Offers: what a refusal for want of room says beside the error."""

import falcon

from blazar_sched.domain import exception
from blazar_sched.service.api import errors
from blazar_sched.service.api import microversion
from blazar_sched.service.api.views import offer as views


def register(app: falcon.App) -> None:
    """Make `app` show the offer of a refusal, from 1.2 on."""
    app.add_error_handler(exception.NotEnoughHostsAvailable, _refuse)


def _refuse(
    req, resp, error: exception.NotEnoughHostsAvailable, params
) -> None:
    errors.refuse(req, resp, error, params)
    version = req.env[microversion.VERSION]
    # That of a change, and of what is old, is not complete.
    if version >= microversion.V1_2 and 'start' in (error.offer or ()):
        resp.media['offer'] = views.offer(error.offer, version)
