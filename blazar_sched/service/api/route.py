# SPDX-License-Identifier: Apache-2.0
"""A route of the API: its handler, with what it reads and answers.

A handler is called with the request, its caller, and the variables of its
path by name. It returns what the answer of the route shows, possibly with an
entity tag.
"""

from collections.abc import Callable
import dataclasses
import inspect
from typing import Any
from wsgiref import types as wsgi

from microversion_parse import Version

from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import whole
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.validation import Schema

Handler = Callable[..., Any]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The body of a response.

    :param shown: the object that is shown, which has a name in the document;
        None if the body is any object
    :param key: the field of the body with the object, '' if the object is the
        body
    :param many: whether the field has a list of objects
    :param as_is: whether handlers return the whole body
    :param more: the schemas of further fields, which may be absent
    """

    shown: Object | None
    key: str = ''
    many: bool = False
    as_is: bool = False
    more: dict[str, Schema] = dataclasses.field(default_factory=dict)

    def schema(self) -> Schema:
        """Describe the body in the document."""
        if self.shown is None:
            return {'type': 'object'}
        item = {'$ref': f'#/components/schemas/{self.shown.name}'}
        if not self.key:
            return item
        body = whole({self.key: many(item) if self.many else item})
        body['properties'].update(self.more)
        return body

    def show(self, found: Any, version: Version) -> Any:
        """Return the body for what a handler has returned."""
        if self.shown is None or self.as_is:
            return found
        body = (
            [self.shown.show(each, version) for each in found] if self.many
            else self.shown.show(found, version)
        )
        return {self.key: body} if self.key else body


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A route of the API.

    :param rule: the rule of the policy, None if anyone may call the route
    :param answer: the body of the response, None if there is none
    :param status: the status of success
    :param since: the first version that has the route
    :param variable: the variable of the path
    :param body: the validator of the request body, by version
    :param query: the query parameters
    :param headers: the headers that only this route reads
    :param also: rules that the handler checks
    :param changing: whether the route has the refusals of a change even though
        it changes nothing
    """

    method: str
    path: str
    handler: Handler
    rule: Rule | None
    answer: Answer | None = None
    status: int = 200
    since: Version = microversion.V1_0
    variable: Field | None = None
    body: validation.ByVersion | None = None
    query: tuple[Field, ...] = ()
    headers: tuple[Field, ...] = ()
    also: tuple[Rule, ...] = ()
    changing: bool = False

    @property
    def tagged(self) -> bool:
        """Whether the response has an entity tag."""
        return self.method == 'GET' and self.answer is not None

    @property
    def summary(self) -> str:
        """The first line of the description in the document."""
        return (inspect.getdoc(self.handler) or '').partition('\n')[0]


@dataclasses.dataclass(frozen=True, slots=True)
class Beside:
    """A WSGI layer of a part, which answers at paths beside the API's routes.

    :param paths: the paths at which the layer answers
    :param layer: called with the application below, `conf` and `manager`
    """

    paths: tuple[str, ...]
    layer: Callable[..., wsgi.WSGIApplication]
