# SPDX-License-Identifier: Apache-2.0
"""What the clients have in common: one service's REST API by keystoneauth.

A status that the caller does not expect, and a service that cannot be
reached, are Unavailable: the same action may work later.
"""

from collections.abc import Collection
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from oslo_config import cfg
import requests

from blazar_sched.domain import exception

# Seconds for one request, where the group's own `timeout` is not set.
TIMEOUT = 60


def load_adapter(
    conf: cfg.ConfigOpts, group: str
) -> adapter.Adapter | None:
    """Return the adapter that `group` describes, None without a cloud."""
    if not conf[group].auth_type:
        return None
    auth = loading.load_auth_from_conf_options(conf, group)
    session = loading.load_session_from_conf_options(
        conf, group, auth=auth, timeout=conf[group].timeout or TIMEOUT
    )
    return loading.load_adapter_from_conf_options(
        conf, group, session=session
    )


class Rest:
    """One service's REST API.

    :param service: its service type, which microversions are sent for
    :param api: a keystoneauth adapter; None where no cloud is configured
    :param microversion: of each request that names no other
    """

    def __init__(
        self, service: str, api: adapter.Adapter | None, microversion: str
    ) -> None:
        self._service = service
        self._api = api
        self._microversion = microversion

    def request(
        self,
        method: str,
        url: str,
        json: Any = None,
        also: Collection[int] = (),
        microversion: str | None = None,
    ) -> requests.Response:
        """Send a request and return the answer.

        :param also: statuses beside 2xx that the caller deals with
        :raises Unavailable: if there is no cloud, no answer, or another
            status
        """
        if self._api is None:
            raise exception.Unavailable(
                f'no {self._service} service is configured'
            )
        try:
            answer = self._api.request(
                url,
                method,
                json=json,
                raise_exc=False,
                microversion=microversion or self._microversion,
                microversion_service_type=self._service,
            )
        except exceptions.ClientException as e:
            raise exception.Unavailable(
                f'{self._service} cannot be reached: {e}'
            ) from e
        if not answer.ok and answer.status_code not in also:
            raise exception.Unavailable(
                f'{self._service} answered {answer.status_code} to {method} '
                f'{url}: {answer.text[:200]}'
            )
        return answer
