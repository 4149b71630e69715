# SPDX-License-Identifier: Apache-2.0
"""Neutron: an API without agents, for floating IPs."""

from collections.abc import Mapping

from tests.cloud import service
from tests.cloud.site import Site


class Neutron(service.Service):
    name = 'neutron'
    type = 'network'
    application = 'neutron.wsgi.api:application'
    databases = ('neutron',)

    @classmethod
    def environment(cls, site: Site) -> Mapping[str, str]:
        return {
            'OS_NEUTRON_CONFIG_DIR': str(site.etc),
            'OS_NEUTRON_CONFIG_FILES': 'neutron.conf',
        }

    def configure(self) -> None:
        state = self._site.made('neutron')
        quota = ('floatingip', 'network', 'port', 'subnet')
        sections = {
            'DEFAULT': {
                'api_paste_config': (
                    self._site.venv / 'etc/neutron/api-paste.ini'
                ),
                'auth_strategy': 'keystone',
                'core_plugin': 'ml2',
                'service_plugins': 'router',
                'state_path': state,
                # No service would receive the notifications.
                'transport_url': 'fake://',
                'notify_nova_on_port_status_changes': False,
                'notify_nova_on_port_data_changes': False,
                'dhcp_agent_notification': False,
                'use_stderr': True,
            },
            'database': {'connection': self._site.databases['neutron']},
            'oslo_concurrency': {'lock_path': state / 'lock'},
            'oslo_policy': {'policy_dirs': state / 'policy.d'},
            'quotas': {f'quota_{name}': -1 for name in quota},
            'ml2': {
                'type_drivers': 'local,flat',
                'project_network_types': 'local',
                'mechanism_drivers': '',
                'extension_drivers': '',
            },
            'keystone_authtoken': self._site.authtoken('neutron'),
        }
        self._site.write('neutron.conf', sections)

    def upgrade(self) -> None:
        conf = self._site.etc / 'neutron.conf'
        self._upgrade(
            'neutron-db-manage', '--config-file', conf, 'upgrade', 'heads'
        )
