# SPDX-License-Identifier: Apache-2.0
"""Nova without its computes.

The filters and weighers of blazar-sched are in its scheduler, and the hint
filter is in its API.
"""

from collections.abc import Mapping
import configparser
import re
import textwrap

from tests.cloud import home
from tests.cloud import service
from tests.cloud.site import Site

# Values of the guide that differ in this cloud.
_STATE = '/var/lib/nova'
_BUS = 'rabbit://blazar_sched:BUS_PASS@controller:5672/blazar_sched'


class Nova(service.Service):
    name = 'nova'
    type = 'compute'
    path = '/v2.1'
    application = 'nova.wsgi.osapi_compute:application'
    # Starting some leases at once takes mostly Nova's own time.
    workers = 2
    threads = 8
    databases = ('nova_api', 'nova_cell0', 'nova_cell1')

    @classmethod
    def environment(cls, site: Site) -> Mapping[str, str]:
        return {
            'OS_NOVA_CONFIG_DIR': str(site.etc),
            'OS_NOVA_DISABLE_EVENTLET_PATCHING': '1',
        }

    def configure(self) -> None:
        state = self._site.made('nova')
        as_nova = self._site.credentials('nova')
        sections = {
            'DEFAULT': {
                'my_ip': '127.0.0.1',
                'host': 'controller',
                'state_path': state,
                'transport_url': self._site.bus,
                'report_interval': 10,
                # On a busy machine, heartbeats of computes are late.
                'service_down_time': 300,
                'use_stderr': True,
            },
            'api': {'auth_strategy': 'keystone'},
            'api_database': {'connection': self._site.databases['nova_api']},
            'conductor': {'workers': 1},
            'database': {'connection': self._site.databases['nova_cell1']},
            'glance': {
                **as_nova, 'endpoint_override': self._site.url('glance'),
            },
            'keystone_authtoken': self._site.authtoken('nova'),
            'neutron': {
                **as_nova, 'endpoint_override': self._site.url('neutron'),
            },
            'notifications': {'notification_format': 'versioned'},
            'oslo_concurrency': {'lock_path': state / 'lock'},
            'oslo_messaging_notifications': {'driver': 'messagingv2'},
            'placement': as_nova,
            'quota': {'driver': 'nova.quota.NoopQuotaDriver'},
            'scheduler': {'workers': 1, 'discover_hosts_in_cells_interval': 2},
            'service_user': {**as_nova, 'send_service_user_token': True},
            'vnc': {'enabled': False},
            'workarounds': {'skip_hypervisor_version_check_on_lm': True},
        }
        ours = _guide('nova-scheduler')
        for there, here in ((_STATE, str(state)), (_BUS, self._site.bus)):
            assert there in ours
            ours = ours.replace(there, here)
        self._site.write('nova.conf', sections, ours)
        self._write_pipelines()

    def _write_pipelines(self) -> None:
        """Write Nova's own pipelines, changed as the guide says."""
        name = 'api-paste.ini'
        pipelines = configparser.ConfigParser(interpolation=None)
        pipelines.read(self._site.venv / 'etc/nova' / name)
        pipelines.read_string(_guide('nova-api'))
        with (self._site.etc / name).open('w') as file:
            pipelines.write(file)

    def upgrade(self) -> None:
        cell0 = self._site.databases['nova_cell0']
        self._manage('api_db', 'sync')
        self._manage('cell_v2', 'map_cell0', '--database_connection', cell0)
        self._manage('cell_v2', 'create_cell', '--name', 'cell1')
        self._manage('db', 'sync')

    def start(self) -> None:
        conf = ('--config-file', self._site.etc / 'nova.conf')
        for program in ('nova-conductor', 'nova-scheduler'):
            self._processes.start(program, program, *conf)
        super().start()

    def _manage(self, *arguments: object) -> None:
        conf = self._site.etc / 'nova.conf'
        self._upgrade('nova-manage', '--config-file', conf, *arguments)


def _guide(title: str) -> str:
    """Return the first lines of configuration in a section of the guide."""
    guide = (home.ROOT / 'doc/source/admin/nova.rst').read_text()
    _, _, section = guide.partition(f'\n{title}\n====')
    block = re.search(r'code-block:: ini\n\n((?:(?:   .*)?\n)+)', section)
    assert block, title
    return textwrap.dedent(block[1])
