# SPDX-License-Identifier: Apache-2.0
"""Magnetic reservations: their project's servers need no hint."""

from collections.abc import Iterable
from typing import Any

from blazar_sched.replica import request
from blazar_sched.replica import state


def drawn(
    replica: state.Replica,
    asked: request.Request,
    host_states: Iterable[Any],
    now: int,
) -> list[Any]:
    """Return the hosts of the magnetic reservations that are open to it.

    Those are whole hosts; Nova and Placement count what is on them.
    """
    if asked.bound:
        return []
    hosts = by_host(replica, asked.project_id, now)
    return [h for h in host_states if h.uuid in hosts] if hosts else []


def by_host(
    replica: state.Replica, project_id: str | None, now: int
) -> dict[str, str]:
    """Return the ids of a project's magnetic reservations by host.

    Of those that are open at `now`.
    """
    return {
        host: id_
        for id_ in tuple(replica.magnetic.get(project_id, ()))
        for _, host, start, end, *_ in replica.index.held(id_)
        if start <= now < end
    }
