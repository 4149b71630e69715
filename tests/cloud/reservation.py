# SPDX-License-Identifier: Apache-2.0
"""blazar-sched itself, as its console script runs it."""

from tests.cloud import service

_CONF = 'blazar-sched.conf'
# Whose APIs it calls, as a user of its own.
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
            },
            'manager': {
                'default_hold': self._site.hold,
                # What the tests wait for.
                'sync_interval': 2,
                'flavor_sync_interval': 2,
                'polling_interval': 5,
                'enable_notification_monitor': True,
                'event_claim_seconds': 6,
            },
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
