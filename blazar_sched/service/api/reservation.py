# SPDX-License-Identifier: Apache-2.0
"""Reservations of a request: whether the caller may ask for them."""

from typing import Any

from blazar_sched.policies import lease as policies
from blazar_sched.service.api import requirement
from blazar_sched.service.api.caller import Caller


def check(
    caller: Caller, reservations: list[dict[str, Any]], lease_id: str = ''
) -> None:
    """Refuse reservations that the caller may not have.

    :param lease_id: the lease that the reservations change
    :raises InvalidInput: if a requirement is malformed
    :raises NotEnoughHostsAvailable: if a requirement names what no host has
    :raises NotAuthorized: if a reservation is shared with other projects, and
        the caller may not share
    """
    requirement.check_reservations(caller, reservations, lease_id)
    if any(reservation.get('projects') for reservation in reservations):
        caller.require(policies.SHARE)
