# SPDX-License-Identifier: Apache-2.0
"""The commands that are made of a verb and of what the client says of a noun.

``ListCalendar`` is the verb `List` of the resource `Calendar`, explained by
the client's method. Commands that have more of their own are in other modules.
"""

import inspect
import re

from blazar_sched_client import resources
from blazar_sched_client.osc import verb

_METHODS = {
    'List': '{0._nouns}', 'Show': 'get_{0._noun}', 'Set': 'update_{0._noun}',
    'Create': 'create_{0._noun}', 'Delete': 'delete_{0._noun}',
}
_NAME = re.compile(f'({"|".join(_METHODS)})([A-Z].*)')


class CreateWebhook(verb.Create):
    """Create a webhook; its secret is shown once."""

    resource = resources.Webhook
    arguments = ('url',)
    required = ('events',)


class ListUsage(verb.List):
    """List what reservations have reserved and used, in amount x hours.

    The report has the days that start in the window. With ``-f csv`` it is
    one for a spreadsheet.
    """

    resource = resources.Usage


def __getattr__(name: str) -> type[verb.Noun]:
    found = _NAME.fullmatch(name)
    if found is None:
        raise AttributeError(name)
    resource = getattr(resources, found[2])
    method = getattr(resources.Nouns, _METHODS[found[1]].format(resource))
    summary = (inspect.getdoc(method) or '').partition('\n')[0]
    return type(name, (getattr(verb, found[1]),), {
        'resource': resource,
        '__doc__': re.sub('^Get ', 'Show ', summary),
        '__module__': __name__,
    })
