# SPDX-License-Identifier: Apache-2.0
"""Somebody who uses the cloud, as a program or at a terminal."""

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
    """Return what the command line clients read from the environment."""
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
        load_yaml_config=False,
        load_envvars=False,
        region_name=site.REGION,
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
    """The answer was no; the message is what was said."""


class Person:
    """A user in a project.

    `sdk` is the SDK, `reservation` its adapter for our API.
    """

    def __init__(self, auth_url: str, user: str, project: str) -> None:
        self._variables = variables(auth_url, user, project)
        self.sdk = connect(auth_url, user, project)
        self.project_id = self.sdk.current_project_id
        self.user_id = self.sdk.current_user_id
        self.reservation = adapter.Adapter(
            self.sdk.session,
            service_type='reservation',
            region_name=site.REGION,
            raise_exc=False,
        )

    def command(self, *arguments: object) -> str:
        """Run the command line client; return what it prints.

        :raises Refused: if it fails
        """
        done = programs.run(
            ['openstack', *map(str, arguments)],
            {**os.environ, **self._variables},
        )
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout

    def openstack(self, *arguments: object) -> Any:
        """Run a command that shows something; return it.

        :raises Refused: if it fails
        """
        printed = self.command(*arguments, '-f', 'json')
        # Blazar's part of it says in a line before that what it has made.
        [document] = re.findall(r'^[{\[].*', printed, re.M | re.S)
        return json.loads(document)

    def boot(
        self,
        name: str,
        flavor: str = 'm1.tiny',
        *,
        zone: str | None = None,
        **hints: str,
    ) -> Any:
        """Boot a server by the command line client, and wait for it.

        :param zone: an availability zone, or ZONE:HOST
        :raises Refused: if it cannot be; also by the scheduler
        """
        made = self.openstack(
            'server', 'create', '--nic', 'none',
            '--image', seed.IMAGE, '--flavor', flavor,
            *([] if zone is None else ['--availability-zone', zone]),
            *(f'--hint={key}={value}' for key, value in hints.items()),
            name,
        )  # fmt: skip

        def look() -> Any:
            now = self.sdk.compute.get_server(made['id'])
            return now.status != 'BUILD' and now

        # The client itself would look every five seconds only.
        server = polling.until(look)
        if server.status == 'ERROR':
            raise Refused(server.fault['message'])
        return server

    def finds_no_host(self, name: str, *args: str, **hints: str) -> bool:
        """Say whether Nova's scheduler, and nobody else, refuses a boot."""
        try:
            self.boot(name, *args, **hints)
        except Refused as e:
            return 'No valid host' in str(e)
        return False

    def get(self, path: str, microversion: str | None = None) -> Any:
        return _read(
            self.reservation.get(f'/{path}', microversion=microversion)
        )

    def create(
        self, collection: str, microversion: str | None = None, **body: Any
    ) -> Any:
        """Make one of our API's nouns; return it.

        :raises Refused: if it is not made
        """
        answer = self.reservation.post(
            f'/{collection}', json=body, microversion=microversion
        )
        [noun] = _read(answer).values()
        return noun

    def update(
        self, path: str, microversion: str | None = None, **body: Any
    ) -> Any:
        """Change one of our API's nouns; return it.

        :raises Refused: if it stays as it was
        """
        answer = self.reservation.put(
            f'/{path}', json=body, microversion=microversion
        )
        [noun] = _read(answer).values()
        return noun

    def update_lease(
        self, lease: Any, microversion: str | None = None, **body: Any
    ) -> Any:
        """:raises Refused: if it stays as it was"""
        return self.update(f'leases/{lease["id"]}', microversion, **body)

    def book(
        self,
        *reservations: dict[str, Any],
        start: datetime.timedelta | None = None,
        length: datetime.timedelta = datetime.timedelta(hours=1),
        microversion: str | None = None,
    ) -> Any:
        """Make a lease that starts now, or `start` from now.

        :raises Refused: if it is not made
        """
        begins = datetime.datetime.now(datetime.UTC)
        if start is not None:
            begins += start
        return self.create(
            'leases',
            microversion,
            name='a lease',
            start_date='now' if start is None else _text(begins),
            end_date=_text(begins + length),
            reservations=list(reservations),
        )

    def lease(self, lease: Any) -> Any:
        """Return a lease as it is now."""
        return self.get(f'leases/{lease["id"]}')['lease']

    def wait_for(self, lease: Any, status: str) -> Any:
        """Return a lease once it has a status."""

        def look() -> Any:
            now = self.lease(lease)
            assert now['status'] != 'ERROR', now
            return now['status'] == status and now

        return polling.until(look)

    def opened(self, lease: Any) -> Any:
        """Return an active lease once it is open as it was changed."""

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
        """End an active lease, and wait until it is over."""
        self.update_lease(lease, end_date='now')
        return self.wait_for(lease, 'TERMINATED')


def hosts(number: int = 1, **parameters: Any) -> dict[str, Any]:
    """Return what is asked for as whole hosts."""
    return {
        'resource_type': 'physical:host',
        'min': number,
        'max': number,
        'hypervisor_properties': '',
        'resource_properties': '',
        **parameters,
    }


def instances(amount: int = 1, **parameters: Any) -> dict[str, Any]:
    """Return what is asked for as instances of a size."""
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
