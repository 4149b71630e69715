# SPDX-License-Identifier: Apache-2.0
"""Client of Nova's server groups."""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from blazar_sched.service.clients import rest
from blazar_sched.service.clients.nova.compute import Compute


class ServerGroups(Compute):
    """The part of the Nova client that handles server groups."""

    def create_server_group(self, name: str, policy: str) -> str | None:
        """Ensure that the client's project has a server group with a name.

        :returns: the server group's id; None if the project may have no
            server group, or no more server groups
        """
        for shown in self._server_groups({}):
            if shown['name'] == name:
                return str(shown['id'])
        with rest.tolerating(403):
            new = self._compute.create_server_group(name=name, policy=policy)
            return str(new.id)
        return None

    def delete_server_group(self, name: str) -> None:
        """Ensure that no project has a server group with a name."""
        # All pages are read first: a deletion would shift the next pages.
        for shown in list(self._server_groups({'all_projects': 'true'})):
            if shown['name'] == name:
                with rest.tolerating(404):
                    self._compute.delete_server_group(shown['id'])

    def _server_groups(
        self, query: Mapping[str, str]
    ) -> Iterator[Mapping[str, Any]]:
        offset = 0
        while True:
            answer = self._compute.get(
                '/os-server-groups', params={**query, 'offset': offset}
            )
            page = answer.json()['server_groups']
            yield from page
            # Nova gives no links here, and may return fewer server groups
            # than requested.
            if not page:
                return
            offset += len(page)
