# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager: their arguments, answers, repetition.

`Calls` is what the API calls, and what `manager.endpoint` answers; a part has
a class of its own calls, which are answered by the part. Arguments
and answers are JSON primitives. The API decides who may make which request;
`project_id` None stands for every project. See the method of the manager for
the errors.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import functools
import inspect
from typing import Any
from typing import cast
from typing import Protocol
from typing import TypedDict
from typing import TypeVar

M = TypeVar('M', bound=Callable[..., object])
T = TypeVar('T', bound=type)

Values = dict[str, Any]


# The parameters of each call, by call.
_PARAMETERS: dict[str, Mapping[str, inspect.Parameter]] = {}


def declared(protocol: T) -> T:
    """Mark a class whose methods are calls of the API."""
    for name, method in vars(protocol).items():
        if inspect.isfunction(method) and name[0] != '_':
            _PARAMETERS[name] = inspect.signature(method).parameters
    return protocol


def parameters(method: str) -> Mapping[str, inspect.Parameter] | None:
    """Return the parameters of a call, None for what is no call of the API."""
    return _PARAMETERS.get(method)


class Page(TypedDict):
    """A part of a list; `next` is the marker of the next page, or None."""

    items: list[Values]
    next: str | None


# For each call that can be repeated, the arguments one of which it needs for
# that; a call that only reads needs none.
_REPEATABLE: dict[str, tuple[str, ...]] = {}


def repeatable(*needed: str) -> Callable[[M], M]:
    """Mark a call that changes nothing if it is repeated.

    :param needed: the arguments of which the call must have one, none if the
        call only reads
    """
    def mark(method: M) -> M:
        _REPEATABLE[method.__name__] = needed
        return method

    return mark


reading = repeatable()


@dataclasses.dataclass(frozen=True, slots=True)
class Noun:
    """The names of the calls that list, show and delete the items of a noun.

    :param owned: whether the items belong to projects
    """

    list: str
    get: str
    delete: str
    owned: bool


def noun(
    one: str, many: str, id_: str, owned: bool = True, delete: str = 'delete'
) -> Noun:
    """Declare the calls that list, show and delete the items of a noun.

    The list comes in pages, after the `marker`. If the items belong to
    projects, each call has the `project_id`.

    :param id_: the argument with the id of the item to show or to delete
    :param delete: the verb of a deletion
    """
    found = Noun(f'list_{many}', f'get_{one}', f'{delete}_{one}', owned)
    for name, argument in (
        (found.list, 'marker'), (found.get, id_), (found.delete, id_)
    ):
        _PARAMETERS[name] = {
            each: inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY)
            for each in (argument, *(['project_id'] if owned else []))
        }
    for name in found.list, found.get:
        _REPEATABLE[name] = ()
    return found


def only_reads(method: str) -> bool:
    return _REPEATABLE.get(method) == ()


def can_be_repeated(method: str, arguments: Mapping[str, object]) -> bool:
    """Return whether the repetition of a call changes nothing."""
    needed = _REPEATABLE.get(method, ())
    return only_reads(method) or any(map(arguments.get, needed))


@declared
class Calls(Protocol):
    """The calls of the API."""

    @repeatable('idempotency_key', 'dry_run')
    def create_lease(
        self, *, values: Values, idempotency_key: str | None = None,
        offering: bool = False, dry_run: bool = False, names: bool = False,
    ) -> Values: ...

    @reading
    def get_lease(
        self, *, lease_id: str, project_id: str | None, use: bool = False
    ) -> Values: ...

    @reading
    def list_leases(
        self, *, project_id: str | None, name: str | None = None,
        status: str | None = None, degraded: bool | None = None,
        at: int | str | None = None, after: int | None = None,
        before: int | None = None, resource_type: str | None = None,
        host: str | None = None, whole_host: str | None = None,
        labels: list[list[str]] | None = None,
        sort: list[list[Any]] | None = None, limit: int | None = None,
        marker: str | None = None,
    ) -> Page: ...

    @repeatable('dry_run')
    def update_lease(
        self, *, lease_id: str, project_id: str | None, values: Values,
        dry_run: bool = False, offering: bool = False,
        as_far_as_possible: bool = False, names: bool = False,
    ) -> Values: ...

    @repeatable('dry_run')
    def delete_lease(
        self, *, lease_id: str, project_id: str | None, dry_run: bool = False
    ) -> None: ...

    @reading
    def get_extension(
        self, *, lease_id: str, project_id: str | None, end: int
    ) -> Values: ...

    @reading
    def get_capacity(
        self, *, project_id: str, start: int | str, end: int | None,
        parts: int, resource_properties: str, flavor_id: str | None,
    ) -> Values: ...

    @reading
    def list_limits(self, *, project_id: str) -> Page: ...

    def create_host(self, *, name: str, values: Values) -> Values: ...

    def update_host(self, *, host_id: str, values: Values) -> Values: ...

    @reading
    def list_allocations(
        self, *, host_id: str | None = None, lease_id: str | None = None,
        reservation_id: str | None = None, marker: str | None = None,
    ) -> Page: ...

    def reallocate(
        self, *, host_id: str, lease_id: str | None = None,
        reservation_id: str | None = None,
    ) -> None: ...

    @reading
    def list_properties(self, *, marker: str | None = None) -> Page: ...

    @reading
    def list_public_properties(self, *, project_id: str) -> Values: ...

    @reading
    def list_unknown_hosts(
        self, *, names: list[str], project_id: str | None
    ) -> list[str]: ...

    @reading
    def list_unknown_properties(
        self, *, names: list[str], private: bool, project_id: str | None
    ) -> list[str]: ...

    def update_property(self, *, name: str, private: bool) -> Values: ...

    @reading
    def list_flavors(
        self, *, project_id: str, marker: str | None = None
    ) -> Page: ...


HOSTS = noun('host', 'hosts', 'host_id', owned=False)


class _Sender:
    """Calls of any name, each of which is sent."""

    def __init__(self, send: Callable[..., object]) -> None:
        self._send = send

    def __getattr__(self, name: str) -> Callable[..., object]:
        return functools.partial(self._send, name)


def sent_by(send: Callable[..., object]) -> Calls:
    """Return calls that are sent by `send`, with their name and arguments."""
    return cast(Calls, _Sender(send))
