# SPDX-License-Identifier: Apache-2.0
"""What all resources of the reservation service have in common."""

from collections.abc import Generator
from collections.abc import Iterable
import difflib
from typing import Any
from typing import Self

from keystoneauth1 import adapter
from openstack import exceptions
from openstack import fields
from openstack import resource

_COMPONENTS = fields.Body, fields.Header, fields.URI, fields.Computed
# Arguments of `Resource.new` and of `Resource.list` that are no fields.
_OF_NEW = {'connection'}
_OF_LIST = {
    'allow_unknown_params', 'base_path', 'headers', 'limit', 'marker',
    'max_items', 'microversion', 'paginated',
}


class Resource(resource.Resource):
    """A resource of the newest version of the API that the service has.

    The SDK drops names that a resource does not have, so that a request with a
    mistyped name would be another request: such a name is refused.
    """

    _max_microversion = '1.2'

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
