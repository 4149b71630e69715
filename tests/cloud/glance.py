# SPDX-License-Identifier: Apache-2.0
"""Glance: images."""

from collections.abc import Mapping

from tests.cloud import service
from tests.cloud.site import Site


class Glance(service.Service):
    name = 'glance'
    type = 'image'
    application = 'glance.wsgi.api:application'
    databases = ('glance',)

    @classmethod
    def environment(cls, site: Site) -> Mapping[str, str]:
        return {'OS_GLANCE_CONFIG_DIR': str(site.etc)}

    def configure(self) -> None:
        stores = {
            'fs': 'images',
            'os_glance_staging_store': 'staging',
            'os_glance_tasks_store': 'tasks',
        }
        sections = {
            'DEFAULT': {'enabled_backends': 'fs:file', 'use_stderr': True},
            'database': {'connection': self._site.databases['glance']},
            'glance_store': {'default_backend': 'fs'},
            **{
                group: {
                    'filesystem_store_datadir': self._site.made('glance', name)
                }
                for group, name in stores.items()
            },
            'paste_deploy': {
                'flavor': 'keystone',
                'config_file': (
                    self._site.venv / 'etc/glance/glance-api-paste.ini'
                ),
            },
            'keystone_authtoken': self._site.authtoken('glance'),
        }
        self._site.write('glance-api.conf', sections)

    def upgrade(self) -> None:
        conf = self._site.etc / 'glance-api.conf'
        self._upgrade('glance-manage', '--config-file', conf, 'db', 'sync')
