# SPDX-License-Identifier: Apache-2.0
"""The caller of a request, with the version, and the caller's manager."""

from collections.abc import Callable
import dataclasses
from typing import Any
from typing import Protocol

import microversion_parse
from oslo_context import context

from blazar_sched.service.api.waiting import Waiting
from blazar_sched.service.bus.calls import Calls


class Manager(Protocol):
    """The interface that the API needs: `service.bus.rpc.Client`."""

    def call(
        self, ctxt: dict[str, Any], method: str, **kwargs: object
    ) -> object: ...

    def check(self) -> None: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Caller:
    """A caller that the policy has admitted to a handler.

    `is_admin` says that the policy lets the caller see every project,
    `version` is the version of `microversion.VERSIONS` that the caller uses.
    `require` passes if the caller may do what a rule of the policy names, and
    raises NotAuthorized otherwise. `manager` is called in the caller's name.
    `waiting` has the requests that wait. `has_project` tells whether Keystone
    has a project of an id, None where no Keystone is asked.
    """

    context: context.RequestContext
    manager: Calls
    is_admin: bool
    version: microversion_parse.Version
    require: Callable[[str], None]
    waiting: Waiting
    has_project: Callable[[str], bool] | None = None

    @property
    def user_id(self) -> str:
        return str(self.context.user_id)

    @property
    def project_id(self) -> str:
        return str(self.context.project_id)

    @property
    def scope(self) -> str | None:
        """The only project that the caller sees, None for every project."""
        return None if self.is_admin else self.project_id
