# SPDX-License-Identifier: Apache-2.0
"""A requested snapshot is made, for the right end."""

from blazar_sched.domain import reservation
from blazar_sched.domain import states
from tests.simulation import history
from tests.simulation.promises import registry
from tests.simulation.promises import servers

_SNAPSHOT = 'snapshot'


@registry.promise
def a_server_has_an_image_when_its_end_comes(world):
    """A server has an image for this end if ``before_end`` is snapshot.

    This excludes servers that came after the snapshots were made, leases that
    were ended early, leases that report a failure, and leases that no manager
    could start in their window.
    """
    for did in world.news:
        if did.what not in (history.DELETED, history.SHELVED):
            continue
        for r in servers.reservations_of(world, did.server):
            if r.before_end == _SNAPSHOT and not _is_done(world, did, r):
                yield (
                    f'{did.server.uuid} is {did.what} at the end of {r}, '
                    f'and has {world.cloud.images[did.server.uuid]}'
                )


@registry.promise
def a_server_has_an_image_when_its_own_end_comes(world):
    """A server has an image if its own lifetime ends with snapshot.

    A reservation that the server used, and that ended before the lifetime,
    deletes the server without an image, even if the deletion is late.
    """
    for did in world.news:
        if did.what != history.DELETED:
            continue
        used = list(servers.reservations_of(world, did.server))
        for r in used:
            if (
                r.instance_id is None or r.on_end != _SNAPSHOT
                or r.over_at is None
                or any(
                    other.instance_id is None
                    and other.on_end == reservation.DELETE
                    and other.over_at is not None
                    and other.over_at < r.over_at
                    for other in used
                )
            ):
                continue
            since = max(r.over_at, world.ended_by_users.get(r.lease_id, 0))
            made = world.cloud.images[did.server.uuid]
            if not any(
                i.at >= since and i.status == history.ACTIVE for i in made
            ):
                yield f'{did} at the end of {r}, and has {made}'


@registry.promise
def an_image_is_of_who_asked_for_it(world):
    for did in world.news:
        if did.what == history.IMAGED and not any(
            _SNAPSHOT in (r.before_end, r.on_end)
            for r in servers.reservations_of(world, did.server)
        ):
            yield f'{did.server} is copied'


def _is_done(world, did, r):
    if (
        not r.is_over(did.at) or r.notice is None or r.trouble
        or not r.opened
    ):
        return True
    was_deleted = r.gone or r.lease_status == states.LEASE_DELETING
    if was_deleted and (r.over_at < r.notice or r.noticed_at is None):
        # The server was deleted earlier, by its user.
        return True
    joined = world.cloud.came[did.server.uuid]
    if r.noticed_at is not None and joined >= r.notice > r.start:
        return True
    return any(
        i.at >= r.notice and i.status != history.LOST
        for i in world.cloud.images[did.server.uuid]
    )
