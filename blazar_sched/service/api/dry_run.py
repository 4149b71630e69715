# SPDX-License-Identifier: Apache-2.0
"""Dry runs: requests that are answered as usual, and change nothing."""

from typing import TypedDict

import falcon
from oslo_utils import strutils

from blazar_sched.domain import exception
from blazar_sched.service.api.schemas.lease import DRY_RUN


class Argument(TypedDict, total=False):
    dry_run: bool


def argument(req: falcon.Request) -> Argument:
    """Return the argument for a dry run, empty if the request is real.

    An unknown value of dry_run is refused, so that a dry run is never
    executed.

    :raises InvalidInput: naming `dry_run`
    """
    asked = req.params.get(DRY_RUN)
    if asked is None:
        return {}
    try:
        only_asks = strutils.bool_from_string(asked, strict=True)
    except ValueError:
        raise exception.InvalidInput(
            f'{DRY_RUN} must be true or false', field=DRY_RUN
        ) from None
    return {'dry_run': True} if only_asks else {}
