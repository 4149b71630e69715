# SPDX-License-Identifier: Apache-2.0
"""What all resources of the reservation service have in common."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Iterable
import difflib
import math
import time
from typing import Any
from typing import ClassVar
from typing import TYPE_CHECKING

from keystoneauth1 import adapter
from openstack import exceptions
from openstack import fields
from openstack import proxy
from openstack import resource
from openstack import utils

if TYPE_CHECKING:
    from typing_extensions import Self

_COMPONENTS = fields.Body, fields.Header, fields.URI, fields.Computed
# Arguments of `Resource.new` and of `Resource.list` that are no fields.
_OF_NEW = {'connection'}
_OF_LIST = {
    'allow_unknown_params', 'base_path', 'headers', 'limit', 'marker',
    'max_items', 'microversion', 'paginated',
}
_DRY_RUN: dict[str, Any] = {'dry_run': 'true'}

header, uri = resource.Header, resource.URI


class Body(fields.Body):
    """A field of a body, or a parameter of a query.

    :param meaning: what the field says
    :param name: the name in the API, by default that of the attribute
    :param form: ``time`` or ``duration``, for a text in this form
    :param choices: the texts that are allowed
    """

    def __init__(
        self, meaning: str, type: type | None = None, *, name: str = '',
        form: str = '', choices: tuple[str, ...] = (), **more: Any,
    ) -> None:
        super().__init__(name, type=type, **more)
        self.__doc__, self.form, self.choices = meaning, form, choices

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name


def body(*args: Any, **more: Any) -> Any:
    """Return a field of a body, of the type that its annotation says."""
    return Body(*args, **more)


class Resource(resource.Resource):
    """A resource of the newest version of the API that the service has.

    The SDK drops names that a resource does not have, so that a request with a
    mistyped name would be another request: such a name is refused.

    :cvar _noun: the resource, as in the names of the client's methods
    :cvar _nouns: the method that lists the resources
    :cvar _columns: what a table of the resources shows
    :cvar _hidden: the attributes that only a request has
    :cvar _created: what the request for a new resource can have
    :cvar _changed: what the request for a change can have
    :cvar _query: the parameters of the list
    :cvar _paginated: whether the user may ask for a page of the list
    """

    _max_microversion = '1.2'

    _noun: ClassVar[str]
    _nouns: ClassVar[str]
    _columns: ClassVar[tuple[str, ...]] = ()
    _hidden: ClassVar[tuple[str, ...]] = ()
    _created: ClassVar[tuple[str, ...]] = ()
    _changed: ClassVar[tuple[str, ...]] = ()
    _query: ClassVar[dict[str, Any]] = {}
    _paginated: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, field in cls._query.items():
            field.name = name
        if cls._query:
            cls._query_mapping = resource.QueryParameters(
                *cls._query, include_pagination_defaults=cls._paginated
            )

    @classmethod
    def new(cls, **attrs: Any) -> Self:
        if not cls._store_unknown_attrs_as_properties:
            cls._require_fields(attrs, _OF_NEW)
        return super().new(**attrs)

    def _update(self, **attrs: Any) -> None:
        if not self._store_unknown_attrs_as_properties:
            self._require_fields(attrs, _OF_NEW)
        super()._update(**attrs)

    @classmethod
    def list(
        cls, session: adapter.Adapter, *args: Any, **params: Any
    ) -> Generator[Self, None, None]:
        cls._require_fields(
            params, _OF_LIST.union(cls._query_mapping._mapping)
        )
        return super().list(session, *args, **params)

    @classmethod
    def _require_fields(
        cls, names: Iterable[str], more: Iterable[str]
    ) -> None:
        """Refuse names that are neither fields of the resource nor `more`.

        :raises InvalidRequest: naming the first such name
        """
        known = set(more)
        for name, component in cls._attributes_iterator(_COMPONENTS):
            known |= {name, component.name}
        for name in names:
            if name not in known:
                near = sorted(n for n in known if n.startswith(name))
                near += difflib.get_close_matches(name, known, 1)
                hint = f'; did you mean {near[0]}?' if near else ''
                raise exceptions.InvalidRequest(
                    f'{name} is no field of a {cls.__name__}{hint}'
                )

    def _prepare_request(self, **options: Any) -> resource._Request:
        # The body of a request has no envelope, as in Blazar.
        return super()._prepare_request(**{**options, 'prepend_key': False})


class Waited(Resource):
    """A resource whose status the service lets a request wait for."""

    status: str
    #: Seconds after which a wait for a status may be continued.
    retry_after: int = header('Retry-After', type=int)

    def wait_for(
        self, session: adapter.Adapter, status: str, failures: list[str],
        timeout: float, wait: float | None, callback: Callable[[int], None],
    ) -> Self:
        """Wait for a status as `Proxy.wait_for_status` does."""
        # The SDK's own wait for a status ignores case, too.
        status, *failures = wanted = [s.upper() for s in (status, *failures)]
        until = time.monotonic() + (math.inf if wait is None else wait)
        kind = f'{type(self).__name__} {self.id}'
        for _ in utils.iterate_timeout(
            wait, f'{kind} is not {status}', wait=0
        ):
            if self.status == status:
                return self
            if self.status in failures:
                raise exceptions.ResourceFailure(f'{kind} is {self.status}')
            callback(0)
            left = until - time.monotonic()
            self.fetch(
                session, wait_for=','.join(wanted),
                timeout=max(1, int(min(60, timeout, left))),
            )
            if self.status not in wanted:
                time.sleep(self.retry_after)
        raise AssertionError


class Proxy(proxy.Proxy):
    """The requests that methods of the client make."""

    def _read(
        self, resource_type: type[resource.ResourceT], query: dict[str, Any],
        **uri: str,
    ) -> resource.ResourceT:
        """Get a resource that has no ID of its own."""
        found = self._get_resource(resource_type, None, **uri)
        return found.fetch(self, requires_id=False, **query)

    def _post(
        self, resource_type: type[resource.ResourceT], dry_run: bool,
        attrs: dict[str, Any],
    ) -> resource.ResourceT:
        made = self._get_resource(resource_type, None, **attrs)
        return made.create(self, **_DRY_RUN if dry_run else {})

    def _put(
        self, resource_type: type[resource.ResourceT],
        value: str | resource.ResourceT | None, dry_run: bool,
        attrs: dict[str, Any],
    ) -> resource.ResourceT:
        changed = self._get_resource(resource_type, value, **attrs)
        return changed.commit(self, params=_DRY_RUN if dry_run else None)

    def _remove(
        self, resource_type: type[resource.ResourceT],
        value: str | resource.ResourceT, ignore_missing: bool,
        dry_run: bool = False,
    ) -> None:
        removed = self._get_resource(resource_type, value)
        try:
            removed.delete(self, params=_DRY_RUN if dry_run else None)
        except exceptions.NotFoundException:
            if not ignore_missing:
                raise
