# SPDX-License-Identifier: Apache-2.0
"""Placement: inventories and their use."""

from collections.abc import Mapping

from tests.cloud import service
from tests.cloud.site import Site


class Placement(service.Service):
    name = 'placement'
    type = 'placement'
    application = 'placement.wsgi.api:application'
    databases = ('placement',)

    @classmethod
    def environment(cls, site: Site) -> Mapping[str, str]:
        return {'OS_PLACEMENT_CONFIG_DIR': str(site.etc)}

    def configure(self) -> None:
        sections = {
            'placement_database': {
                'connection': self._site.databases['placement'],
            },
            'api': {'auth_strategy': 'keystone'},
            'keystone_authtoken': self._site.authtoken('placement'),
        }
        self._site.write('placement.conf', sections)

    def upgrade(self) -> None:
        conf = self._site.etc / 'placement.conf'
        self._upgrade('placement-manage', '--config-file', conf, 'db', 'sync')
