# SPDX-License-Identifier: Apache-2.0
"""The base of the parts of the Nova client.

python-novaclient does all but to read servers and images: it stops before the
microversion that shows scheduler hints.
"""

from collections.abc import Callable
from collections.abc import Iterator
import functools
import os
from typing import Any
from typing import TYPE_CHECKING
from typing import TypeVar

from keystoneauth1 import adapter

from blazar_sched.service.clients import rest

if TYPE_CHECKING:
    from novaclient import client
    from novaclient.base import Resource

Shown = TypeVar('Shown', bound='Resource')

# The last microversion before hypervisors lose cpu_info.
MICROVERSION = '2.87'


class Compute:
    """A client of the compute API.

    :param api: a keystoneauth adapter for the compute service of an admin;
        None where no cloud is configured
    """

    def __init__(self, api: adapter.Adapter | None) -> None:
        self._api = api
        self._turns = rest.Turns()

    @functools.cached_property
    def _nova(self) -> 'client.Client':
        # Only managers need the library. The library would write the names and
        # ids of what it lists into the home directory, for a shell.
        os.environ.setdefault('NOVACLIENT_UUID_CACHE_DIR', os.devnull)
        from novaclient import client

        options = self._options()
        return client.Client(
            MICROVERSION,
            # The same, by the older name.
            endpoint_type=options.pop('interface'),
            # As keystoneauth names this program to the other services.
            user_agent='blazar-sched',
            **options,
        )

    @functools.cached_property
    def _compute(self) -> adapter.Adapter:
        return adapter.Adapter(**self._options())

    def _options(self) -> dict[str, Any]:
        api = rest.required(self._api, 'compute')
        names = 'session', 'auth', 'region_name', *rest.OPTIONS
        return {
            **{name: getattr(api, name) for name in names},
            'service_type': api.service_type or 'compute',
            'min_version': '2.1',
            'max_version': '2.latest',
        }


def pages(
    list_page: Callable[..., list[Shown]], **filters: object
) -> Iterator[Shown]:
    """Yield the objects of a list of python-novaclient, page by page.

    The library drops Nova's links to the next page, so the last page is empty.
    """
    marker = None
    while page := list_page(marker=marker, **filters):
        yield from page
        marker = page[-1].id
