# SPDX-License-Identifier: Apache-2.0
"""Nova and Placement at the level of HTTP, and all that can go wrong there.

For tests in which a manager meets failures, conflicts and time-outs, and for
those that look at single requests. Both services are one stand-in, as both
know the same hosts and servers, and as the order of all requests counts.
"""

import copy

from tests.standins.nova import NovaApi
from tests.standins.placement import PlacementApi
from tests.standins.placement import SLOT_TOTALS
from tests.standins.rest import Service
from tests.standins.rest import uuid_of


class CloudApi(NovaApi, PlacementApi, Service):
    """Nova and Placement, with compute hosts of these names."""

    uuid = staticmethod(uuid_of)

    def __init__(self, *hosts):
        NovaApi.__init__(self, hosts)
        PlacementApi.__init__(self, hosts)
        Service.__init__(self, *self.nova_routes(), *self.placement_routes())

    def left(self):
        """Return what leases have made and not removed."""
        return copy.deepcopy(
            (
                self.flavors,
                self.access,
                self.aggregates,
                self.server_groups,
                self.servers,
                self.classes,
                {
                    (p['name'], class_): held['total']
                    for p in self.providers.values()
                    for class_, held in p['inventories'].items()
                    if class_ not in SLOT_TOTALS
                },
            )
        )


class Acting(Service):
    """The cloud, for who acts in a project of their own."""

    def __init__(self, cloud, project_id):
        super().__init__()
        self._cloud = cloud
        self._project_id = project_id

    def request(self, *args, **kwargs):
        before, self._cloud.acting = self._cloud.acting, self._project_id
        try:
            return self._cloud.request(*args, **kwargs)
        finally:
            self._cloud.acting = before
