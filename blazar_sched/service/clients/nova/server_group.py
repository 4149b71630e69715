# SPDX-License-Identifier: Apache-2.0
"""Client of Nova's server groups."""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from urllib import parse

from blazar_sched.service.clients import rest


class ServerGroups:
    """The part of the Nova client that handles server groups."""

    _rest: rest.Rest

    def create_server_group(self, name: str, policy: str) -> str | None:
        """Ensure that the client's project has a server group with a name.

        :returns: the server group's id; None if the project may have no
            server group, or no more server groups
        """
        for shown in self._server_groups({}):
            if shown['name'] == name:
                return str(shown['id'])
        answer = self._rest.request(
            'POST',
            '/os-server-groups',
            json={'server_group': {'name': name, 'policy': policy}},
            also=(403,),
        )
        if answer.status_code == 403:
            return None
        return str(rest.document(answer)['server_group']['id'])

    def delete_server_group(self, name: str) -> None:
        """Ensure that no project has a server group with a name."""
        # All pages are read first: a deletion would shift the next pages.
        for shown in list(self._server_groups({'all_projects': 'true'})):
            if shown['name'] == name:
                self._rest.request(
                    'DELETE', f'/os-server-groups/{shown["id"]}', also=(404,)
                )

    def _server_groups(
        self, query: Mapping[str, str]
    ) -> Iterator[Mapping[str, Any]]:
        offset = 0
        while True:
            page = self._rest.ask(
                '/os-server-groups?'
                + parse.urlencode({**query, 'offset': offset})
            )['server_groups']
            yield from page
            # Nova gives no links here, and may return fewer server groups
            # than requested.
            if not page:
                return
            offset += len(page)
