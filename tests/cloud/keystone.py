# SPDX-License-Identifier: Apache-2.0
"""Keystone: users, projects, roles and the catalog."""

import base64
from collections.abc import Mapping
import secrets

from tests.cloud import service
from tests.cloud.site import PASSWORD
from tests.cloud.site import REGION
from tests.cloud.site import Site

_KEYS = ('fernet_tokens', 'fernet_receipts', 'credential')
# A protocol of federation, for which Keystone itself has a plugin.
PROTOCOL = 'mapped'
# The header in which a web server's module of OpenID Connect names the
# identity provider of a user whom it has let in.
ISSUER = 'OIDC-ISS'


class Keystone(service.Service):
    name = 'keystone'
    type = 'identity'
    path = '/v3'
    application = 'keystone.wsgi.api:application'
    threads = 8
    databases = ('keystone',)

    @classmethod
    def environment(cls, site: Site) -> Mapping[str, str]:
        return {'OS_KEYSTONE_CONFIG_DIR': str(site.etc)}

    def configure(self) -> None:
        keys = {}
        for group in _KEYS:
            folder = self._site.made('keystone', group)
            keys[group] = {'key_repository': folder}
            # The next key, and the current one.
            for name in '0', '1':
                key = base64.urlsafe_b64encode(secrets.token_bytes(32))
                (folder / name).write_bytes(key)
        sections = {
            'DEFAULT': {'use_stderr': True},
            'database': {'connection': self._site.databases['keystone']},
            'cache': {'enabled': True, 'backend': 'oslo_cache.dict'},
            # The minimum: by default, bcrypt takes 0.2 s for each sign-in.
            'identity': {'password_hash_rounds': 4},
            'federation': {
                'trusted_dashboard': f'{self._site.url("blazar")}/ui/websso',
                'sso_callback_template': (
                    self._site.venv / 'etc/keystone/sso_callback_template.html'
                ),
            },
            PROTOCOL: {
                'remote_id_attribute': f'HTTP_{ISSUER.replace("-", "_")}',
            },
            **keys,
        }
        self._site.write('keystone.conf', sections)

    def upgrade(self) -> None:
        self._manage('db_sync')
        endpoints = [
            f'--bootstrap-{interface}-url={self.url}'
            for interface in ('admin', 'internal', 'public')
        ]
        self._manage(
            'bootstrap', f'--bootstrap-password={PASSWORD}',
            f'--bootstrap-region-id={REGION}', *endpoints,
        )

    def _manage(self, *arguments: object) -> None:
        conf = self._site.etc / 'keystone.conf'
        self._upgrade('keystone-manage', '--config-file', conf, *arguments)
