# SPDX-License-Identifier: Apache-2.0
"""A user of the cloud, by the SDK or by the command line clients."""

import datetime
import json
import os
import re
from typing import Any

from keystoneauth1 import adapter
import openstack
import requests

from tests import programs
from tests.cloud import polling
from tests.cloud import seed
from tests.cloud import site


def variables(auth_url: str, user: str, project: str) -> dict[str, str]:
    """Return the environment variables that the command line clients read."""
    return {
        'OS_AUTH_URL': auth_url,
        'OS_USERNAME': user,
        'OS_PASSWORD': site.PASSWORD,
        'OS_PROJECT_NAME': project,
        'OS_USER_DOMAIN_NAME': 'Default',
        'OS_PROJECT_DOMAIN_NAME': 'Default',
        'OS_IDENTITY_API_VERSION': '3',
        'OS_REGION_NAME': site.REGION,
        'OS_COMPUTE_API_VERSION': '2.100',
    }


def connect(
    auth_url: str, user: str, project: str
) -> openstack.connection.Connection:
    """Return the SDK as a user in a project."""
    return openstack.connect(
        load_yaml_config=False, load_envvars=False, region_name=site.REGION,
        auth={
            'auth_url': auth_url,
            'username': user,
            'password': site.PASSWORD,
            'project_name': project,
            'user_domain_name': 'Default',
            'project_domain_name': 'Default',
        },
    )


class Refused(Exception):
    """A refused request; the message is that of the response."""


class Person:
    """A user in a project.

    `sdk` is the SDK, `reservation` is its adapter for the reservation API.
    """

    def __init__(self, auth_url: str, user: str, project: str) -> None:
        self._variables = variables(auth_url, user, project)
        self.sdk = connect(auth_url, user, project)
        self.project_id = self.sdk.current_project_id
        self.user_id = self.sdk.current_user_id
        self.reservation = adapter.Adapter(
            self.sdk.session, service_type='reservation',
            region_name=site.REGION, raise_exc=False,
        )

    def command(self, *arguments: object) -> str:
        """Run the command line client; return its output.

        :raises Refused: if the command fails
        """
        done = programs.run(
            ['openstack', *map(str, arguments)],
            {**os.environ, **self._variables},
        )
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout

    def openstack(self, *arguments: object) -> Any:
        """Run a command that prints JSON; return the parsed JSON.

        :raises Refused: if the command fails
        """
        printed = self.command(*arguments, '-f', 'json')
        # Blazar's plugin prints a line about the created object first.
        [document] = re.findall(r'^[{\[].*', printed, re.M | re.S)
        return json.loads(document)

    def boot(
        self, name: str, flavor: str = 'm1.tiny', *, zone: str | None = None,
        **hints: str,
    ) -> Any:
        """Boot a server; wait until it is active.

        :param zone: an availability zone, or ZONE:HOST
        :raises Refused: if Nova's scheduler refuses the server
        """
        compute = self.sdk.compute
        made = compute.create_server(
            name=name, networks='none', scheduler_hints=hints,
            image_id=self.sdk.image.find_image(seed.IMAGE).id,
            flavor_id=compute.find_flavor(flavor, ignore_missing=False).id,
            **({} if zone is None else {'availability_zone': zone}),
        )

        def look() -> Any:
            now = compute.get_server(made.id)
            return now.status != 'BUILD' and now

        server = polling.until(look)
        if server.status == 'ERROR':
            raise Refused(server.fault['message'])
        return server

    def finds_no_host(self, name: str, *args: str, **hints: str) -> bool:
        """Tell whether Nova's scheduler refuses a boot.

        :raises Refused: if the boot fails for another reason
        """
        try:
            self.boot(name, *args, **hints)
        except Refused as e:
            if 'No valid host' not in str(e):
                raise
            return True
        return False

    def get(self, path: str, microversion: str | None = None) -> Any:
        return _read(
            self.reservation.get(f'/{path}', microversion=microversion)
        )

    def create(
        self, collection: str, microversion: str | None = None, **body: Any
    ) -> Any:
        """Create an object through the reservation API; return the object."""
        return self._sent('POST', collection, microversion, body)

    def update(
        self, path: str, microversion: str | None = None, **body: Any
    ) -> Any:
        """Change an object through the reservation API; return the object."""
        return self._sent('PUT', path, microversion, body)

    def _sent(
        self, method: str, path: str, version: str | None, body: dict[str, Any]
    ) -> Any:
        """:raises Refused: if the request is refused"""
        [noun] = _read(self.reservation.request(
            f'/{path}', method, json=body, microversion=version
        )).values()
        return noun

    def update_lease(
        self, lease: Any, microversion: str | None = None, **body: Any
    ) -> Any:
        """:raises Refused: if it stays as it was"""
        return self.update(f'leases/{lease["id"]}', microversion, **body)

    def book(
        self, *reservations: dict[str, Any],
        start: datetime.timedelta | None = None,
        length: datetime.timedelta = datetime.timedelta(hours=1),
        microversion: str | None = None,
    ) -> Any:
        """Create a lease that starts now, or `start` from now.

        :raises Refused: if the lease is refused
        """
        begins = datetime.datetime.now(datetime.UTC)
        if start is not None:
            begins += start
        return self.create(
            'leases', microversion, name='a lease',
            start_date='now' if start is None else _text(begins),
            end_date=_text(begins + length), reservations=list(reservations),
        )

    def lease(self, lease: Any) -> Any:
        """Return a lease as it is now."""
        return self.get(f'leases/{lease["id"]}')['lease']

    def wait_for(self, lease: Any, status: str) -> Any:
        """Wait until a lease has a status; return the lease."""

        def look() -> Any:
            now = self.lease(lease)
            assert now['status'] != 'ERROR', now
            return now['status'] == status and now

        return polling.until(look)

    def opened(self, lease: Any) -> Any:
        """Wait until the change of an active lease is done; return the lease.
        """

        def look() -> Any:
            now = self.lease(lease)
            [start] = [
                event
                for event in now['events']
                if event['event_type'] == 'start_lease'
            ]
            return start['status'] == 'DONE' and now

        return polling.until(look)

    def end(self, lease: Any) -> Any:
        """End an active lease, and wait until the lease is over."""
        self.update_lease(lease, end_date='now')
        return self.wait_for(lease, 'TERMINATED')


def hosts(number: int = 1, **parameters: Any) -> dict[str, Any]:
    """Return the request for a reservation of whole hosts."""
    return {
        'resource_type': 'physical:host',
        'min': number,
        'max': number,
        'hypervisor_properties': '',
        'resource_properties': '',
        **parameters,
    }


def instances(amount: int = 1, **parameters: Any) -> dict[str, Any]:
    """Return the request for a reservation of instances."""
    return {
        'resource_type': 'virtual:instance',
        'amount': amount,
        'vcpus': 2,
        'memory_mb': 1024,
        'disk_gb': 1,
        'affinity': None,
        'resource_properties': '',
        **parameters,
    }


def _text(time: datetime.datetime) -> str:
    return time.strftime('%Y-%m-%d %H:%M:%S')


def _read(answer: requests.Response) -> Any:
    if not answer.ok:
        raise Refused(f'{answer.status_code}: {answer.text}')
    return answer.json()
