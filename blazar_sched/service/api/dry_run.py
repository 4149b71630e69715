# SPDX-License-Identifier: Apache-2.0
"""Dry runs: requests that are answered as usual, and change nothing."""

from typing import TypedDict

import falcon

from blazar_sched.service.api import listing
from blazar_sched.service.api.schemas.lease import DRY_RUN


class Argument(TypedDict, total=False):
    dry_run: bool


def argument(req: falcon.Request) -> Argument:
    """Return the argument for a dry run, empty if the request is real.

    An unknown value of dry_run is refused, so that a dry run is never
    executed.

    :raises InvalidInput: naming `dry_run`
    """
    return {'dry_run': True} if listing.boolean(req, DRY_RUN) else {}
