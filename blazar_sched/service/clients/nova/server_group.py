# SPDX-License-Identifier: Apache-2.0
"""Client of Nova's server groups."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from blazar_sched.service.clients import rest
from blazar_sched.service.clients.nova.compute import Compute

if TYPE_CHECKING:
    from novaclient.v2.server_groups import ServerGroup as Shown


class ServerGroups(Compute):
    """The part of the Nova client that handles server groups."""

    def create_server_group(self, name: str, policy: str) -> str | None:
        """Ensure that the client's project has a server group with a name.

        A server group with another policy is replaced.

        :returns: the server group's id; None if the project may have no
            server group, or no more server groups
        """
        # All pages are read first: a deletion would shift the next pages.
        for shown in list(self._server_groups()):
            if shown.name == name and shown.policy == policy:
                return shown.id
            if shown.name == name:
                self._delete_server_group(shown)
        with rest.tolerating(403):
            return self._nova.server_groups.create(name, policy).id
        return None

    def delete_server_group(self, name: str) -> None:
        """Ensure that no project has a server group with a name."""
        # All pages are read first: a deletion would shift the next pages.
        for shown in list(self._server_groups(all_projects=True)):
            if shown.name == name:
                self._delete_server_group(shown)

    def _delete_server_group(self, shown: 'Shown') -> None:
        with rest.tolerating(404):
            self._nova.server_groups.delete(shown.id)

    def _server_groups(self, all_projects: bool = False) -> Iterator['Shown']:
        # Nova has no marker here, and may return fewer server groups than
        # requested.
        offset = 0
        while page := self._nova.server_groups.list(
            all_projects, offset=offset
        ):
            yield from page
            offset += len(page)
