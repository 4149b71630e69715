# SPDX-License-Identifier: Apache-2.0
"""Collections of the API: the routes of a noun, from one row.

Lists, shows and deletions are the same for every noun: the handler calls the
manager. The module of a noun has the handlers that are its own.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
from operator import attrgetter
from operator import itemgetter
from typing import Any

import falcon
from microversion_parse import Version

from blazar_sched.service.api import listing
from blazar_sched.service.api import microversion
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Handler
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.validation import ByVersion
from blazar_sched.service.bus.calls import Calls
from blazar_sched.service.bus.calls import Noun

# Returns the method of the manager to call.
Method = Callable[[Calls], Callable[..., Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class Collection:
    """A noun of the API.

    :param path: the path of the list
    :param id: the variable of the path of one item, and the argument of the
        calls of the manager
    :param one: the key of an item in a body
    :param many: the key of a list in a body
    :param policy: the beginning of the names of the rules
    :param readers: the role that lists and shows items
    :param writers: the role that creates, changes and deletes items
    :param shown: an item
    :param listed: an item in a list, by default as `shown`
    :param calls: the calls of the manager, None if each route names its own
    """

    path: str
    id: Field
    one: str
    many: str
    policy: str
    readers: str
    writers: str
    shown: Object
    listed: Object | None = None
    since: Version = microversion.V1_0
    calls: Noun | None = None

    @property
    def readable(self) -> Rule:
        return Rule(f'{self.policy}:get', self.readers)

    def writable(self, method: str) -> Rule:
        return Rule(f'{self.policy}:{method}', self.writers)

    def to_list(
        self, text: str, call: Method | None = None, sort: Sequence[str] = ()
    ) -> Route:
        """Return the route of the list.

        :param text: the description in the document
        :param call: the call in place of that of the noun, likewise below
        :param sort: the keys by which the items are sorted
        """
        ask = call or self._named('list')

        def handle(req: falcon.Request, caller: Caller) -> list[listing.Item]:
            found = listing.whole(
                lambda **page: ask(caller.manager)(
                    **self._scope(caller), **page
                )
            )
            return sorted(found, key=itemgetter(*sort)) if sort else found

        answer = Answer(self.listed or self.shown, self.many, many=True)
        return Route(
            'GET', self.path, _named(handle, f'list_{self.many}', text),
            self.readable, answer, since=self.since,
        )

    def to_create(
        self, handler: Handler, body: ByVersion, **more: Any
    ) -> Route:
        """Return the route of a creation; `more` is as for a Route."""
        return Route(
            'POST', self.path, handler, self.writable('post'), self._answer(),
            201, self.since, body=body, **more,
        )

    def to_show(self, text: str, call: Method | None = None) -> Route:
        """Return the route of an item, with its description."""
        handle = self._handler('show', text, call or self._named('get'))
        return self._of_one('GET', handle, self.readable, self._answer())

    def to_update(
        self, handler: Handler, body: ByVersion, **more: Any
    ) -> Route:
        """Return the route of a change; `more` is as for a Route."""
        return self._of_one(
            'PUT', handler, self.writable('put'), self._answer(), body=body,
            **more,
        )

    def to_delete(self, text: str, call: Method | None = None) -> Route:
        """Return the route of a deletion, with its description."""
        handle = self._handler('delete', text, call or self._named('delete'))
        return self._of_one(
            'DELETE', handle, self.writable('delete'), status=204
        )

    def _named(self, verb: str) -> Method:
        return attrgetter(getattr(self.calls, verb))

    def _handler(self, verb: str, text: str, call: Method) -> Handler:
        """Return a handler that calls the manager about one item."""
        def handle(
            req: falcon.Request, caller: Caller, **variable: str
        ) -> Any:
            return call(caller.manager)(**variable, **self._scope(caller))

        return _named(handle, f'{verb}_{self.one}', text)

    def _of_one(
        self, method: str, handler: Handler, rule: Rule,
        answer: Answer | None = None, **more: Any,
    ) -> Route:
        return Route(
            method, f'{self.path}/{{{self.id.name}}}', handler, rule, answer,
            since=self.since, variable=self.id, **more,
        )

    def _answer(self) -> Answer:
        return Answer(self.shown, self.one)

    def _scope(self, caller: Caller) -> dict[str, str | None]:
        is_owned = self.calls is not None and self.calls.owned
        return {'project_id': caller.scope} if is_owned else {}


def _named(handler: Handler, name: str, text: str) -> Handler:
    """Give a handler its name and description in the document."""
    handler.__name__, handler.__doc__ = name, text
    return handler
