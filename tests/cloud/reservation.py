# SPDX-License-Identifier: Apache-2.0
"""blazar-sched itself, run by its console script."""

from tests.cloud import keystone
from tests.cloud import service

# Equal in nova.conf and in the manager's file. The lead is short, so that
# tests do not wait, and there are too few hosts for headroom.
RELOCATION = {
    'relocation_lead': 15,
    'relocation_cold_notice': 5,
    'relocation_shortest_stay': 5,
    'relocation_notice': 300,
    'relocation_headroom': 0,
    'relocation_host_headroom': 0,
}

_CONF = 'blazar-sched.conf'
# The services whose APIs blazar-sched calls, as a user of its own.
_CALLED = ('keystone', 'neutron', 'nova', 'placement')


class Reservation(service.Service):
    name = 'blazar'
    type = 'reservation'
    path = '/v1'
    databases = ('blazar',)

    def configure(self) -> None:
        user = self._site.credentials(self.name)
        sections = {
            'DEFAULT': {'transport_url': self._site.bus},
            'database': {'connection': self._site.databases['blazar']},
            'api': {
                'auth_strategy': 'keystone',
                'host': '127.0.0.1',
                'port': self._site.ports[self.name],
                'threads': 8,
                'websso': (
                    f'University of X:{self._site.url("keystone")}'
                    f'/v3/auth/OS-FEDERATION/websso/{keystone.PROTOCOL}'
                ),
            },
            'manager': {
                'default_hold': self._site.hold,
                # The interval is longer than any test: servers are known by
                # Nova's notifications alone.
                'sync_interval': 600,
                'enable_notification_monitor': True,
                # The intervals for which the tests wait.
                'polling_interval': 2,
                'event_claim_seconds': 6,
                'vacate_lead_time': 20,
                'vacate_notice': 4,
                'closing_interval': 1,
                'restore_interval': 2,
                'unbounded': 'forever',
                **RELOCATION,
            },
            'enforcement': {
                'enabled_filters': 'MaxLeasesFilter,MaxResourcesFilter',
                'max_percent_per_project': -1,
                'unified_limits_interval': 1,
            },
            'oslo_messaging_notifications': {'driver': 'messagingv2'},
            'keystone_authtoken': self._site.authtoken(self.name),
            **dict.fromkeys(_CALLED, user),
        }
        self._site.write(_CONF, sections)

    def upgrade(self) -> None:
        self._upgrade('blazar-sched', 'db', 'upgrade', *self._conf)

    def start(self) -> None:
        for part in ('manager', 'api'):
            self._processes.start(part, 'blazar-sched', part, *self._conf)
        self._processes.wait('api', self._answers)

    @property
    def _conf(self) -> tuple[object, ...]:
        return ('--config-file', self._site.etc / _CONF)
