# SPDX-License-Identifier: Apache-2.0
"""The unified limits of Keystone, in place of the options of the filters."""

from collections.abc import Collection
from collections.abc import Mapping
import functools
from typing import Any
from urllib import parse

from keystoneauth1 import adapter
from keystoneauth1 import loading
from oslo_config import cfg

from blazar_sched.conf import keystone as keystone_conf
from blazar_sched.domain import exception
from blazar_sched.parts.limit.unused import Unused
from blazar_sched.service import loop
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.keystone import OTHER_SCOPES
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.manager.running import Running

# The type of the service whose limits apply.
RESERVATION = 'reservation'
# Seconds that a start waits for the limits.
FIRST_LIMITS = 10.0

# Limits by project and by name. Those of the key None apply to projects that
# have no limit of their own.
Limits = Mapping[str | None, Mapping[str, int]]


class UnifiedLimits(loop.Looped):
    """The loop that reads the limits, and what it has read last.

    :param interval: the seconds between two looks at Keystone
    """

    def __init__(self, conf: cfg.ConfigOpts, interval: int) -> None:
        self._conf = conf
        self._limits: Limits | None = None
        self._loop = loop.Loop('limit sync', self.step, lambda: interval)

    def start(self) -> None:
        """Start the loop, and wait until the limits were read, or not.

        Until then, requests for leases would be answered 503.
        """
        super().start()
        self._loop.await_step(FIRST_LIMITS)

    def step(self) -> None:
        """Read the limits.

        :raises Unavailable: if Keystone does not answer
        """
        self._limits = read(self._system) if self._system else {}

    def of(self, project_id: str) -> Mapping[str, int]:
        """Return the limits of a project, by name.

        :raises Unavailable: if they are not known yet
        """
        if self._limits is None:
            raise exception.Unavailable(
                'the limits of projects were not read from Keystone yet'
            )
        return self._limits.get(project_id) or self._limits.get(None, {})

    @functools.cached_property
    def _system(self) -> adapter.Adapter | None:
        """The identity API as the service's user in the system scope."""
        api = rest.load_adapter(self._conf, keystone_conf.GROUP)
        if api is None:
            return None
        scopes = {**OTHER_SCOPES, 'system_scope': 'all'}
        auth = loading.load_auth_from_conf_options(
            self._conf, keystone_conf.GROUP, **scopes
        )
        with rest.reaching('identity'):
            url = rest.required(api, 'identity').get_endpoint()
        return adapter.Adapter(
            api.session, auth=auth, service_type='identity',
            endpoint_override=url, region_name=api.region_name,
        )


def read(system: adapter.Adapter) -> Limits:
    """Return the limits of the service of type ``reservation``.

    The limits of a project include the registered limits that the project does
    not change.

    :param system: the identity API of a user in the system scope
    :raises Unavailable: if Keystone cannot be reached, refuses the user, or
        has not exactly one such service
    """
    services = _listed(system, 'services', type=RESERVATION)
    if len(services) != 1:
        raise exception.Unavailable(
            f'Keystone has {len(services)} services of type {RESERVATION}'
        )
    asked, region = {'service_id': services[0]['id']}, system.region_name
    registered = {
        each['resource_name']: each['default_limit']
        for each in _in_region(
            _listed(system, 'registered_limits', **asked), region
        )
    }
    found: dict[str | None, dict[str, int]] = {None: registered}
    for each in _in_region(_listed(system, 'limits', **asked), region):
        if each['project_id']:
            own = found.setdefault(each['project_id'], {**registered})
            own[each['resource_name']] = each['resource_limit']
    return found


def _listed(
    api: adapter.Adapter, plural: str, **asked: str
) -> list[dict[str, Any]]:
    answer = api.get(f'/{plural}?{parse.urlencode(asked)}')
    found: list[dict[str, Any]] = answer.json()[plural]
    return found


def _in_region(
    limits: Collection[Mapping[str, Any]], region: str | None
) -> list[Mapping[str, Any]]:
    """Return the limits of all regions, and then those of one region."""
    return [
        each for where in dict.fromkeys((None, region)) for each in limits
        if each['region_id'] == where
    ]


def start(manager: Manager) -> Running:
    """Give back what leases do not use, and let Keystone's limits apply.

    The limits of Keystone apply only if the operator wants them.
    """
    unused = Unused(manager.bookings, manager.leases, manager.metrics)
    interval = manager.conf.enforcement.unified_limits_interval
    if not interval:
        return Running(threads=(unused,))
    limits = UnifiedLimits(manager.conf, interval)
    manager.enforcement.limits_of = limits.of
    return Running(threads=(unused, limits))
