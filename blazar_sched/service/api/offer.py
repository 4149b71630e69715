# SPDX-License-Identifier: Apache-2.0
"""Offers, which a refusal for lack of room includes beside the error."""

from collections.abc import Mapping
from typing import Any

import falcon

from blazar_sched.domain import exception
from blazar_sched.service.api import errors
from blazar_sched.service.api import microversion
from blazar_sched.service.api.views.offer import OFFER


def register(app: errors.App) -> None:
    """Make `app` show the offer of a refusal, from 1.2 on."""
    app.add_error_handler(exception.NotEnoughHostsAvailable, _refuse)


def _refuse(
    req: falcon.Request,
    resp: falcon.Response,
    error: exception.NotEnoughHostsAvailable,
    params: Mapping[str, Any],
) -> None:
    errors.refuse(req, resp, error, params)
    version = req.env[microversion.VERSION]
    # The offer is incomplete if no search for a start was made.
    offer = error.offer or {}
    if version >= microversion.V1_2 and 'start' in offer:
        resp.media['offer'] = OFFER.show(offer, version)
