# SPDX-License-Identifier: Apache-2.0
"""The views of a lease request: in a list, and with an estimate."""

from operator import itemgetter

from microversion_parse import Version

from blazar_sched.domain import states
from blazar_sched.domain.lease_request import NORMAL
from blazar_sched.domain.lease_request import PRIORITIES
from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.times import DATE
from blazar_sched.service.api.times import STAMPS


class _Priority(Type):
    """A priority, by its name."""

    def show(self, value: int, version: Version) -> str:
        return PRIORITIES[value]


_ID = 'e4a7c2d8-0000-4000-8000-00000000000b'
_FIELDS = (
    Field('id', meaning.REQUEST_ID, _ID, TEXT),
    Field('name', meaning.LEASE_NAME, 'night-run', TEXT),
    Field('project_id', 'ID of the project that waits', 'p1', TEXT),
    Field('user_id', 'ID of the user who created the request', 'alice', TEXT),
    Field(
        'start_date', meaning.FIRST_OF_STARTS, 1767229200, DATE,
        itemgetter('start'),
    ),
    Field(
        'latest_start_date', meaning.LAST_OF_STARTS, 1767834000, DATE,
        itemgetter('latest_start'),
    ),
    Field('duration', 'Length of the lease, in seconds', 21600, INTEGER),
    Field('wait_until', meaning.WAIT_UNTIL, 1767834000, DATE),
    Field(
        'priority', meaning.PRIORITY, PRIORITIES.index(NORMAL),
        _Priority({'enum': list(PRIORITIES)}),
    ),
    Field('flexible', meaning.FLEXIBLE, False, BOOLEAN),
    Field(
        'status',
        'Status of the lease request: `BOOKED` has a lease, `LAPSED` has '
        'waited until `wait_until` in vain',
        states.REQUEST_WAITING, Type({'enum': list(states.REQUEST_STATUSES)}),
    ),
    Field(
        'position',
        'Position among the waiting lease requests of all projects, from 1; '
        'null if the lease request does not wait',
        3, INTEGER_OR_NULL,
    ),
    Field(
        'lease_id', 'ID of the lease; null if there is none', None,
        TEXT_OR_NULL,
    ),
    *STAMPS,
)
LISTED_LEASE_REQUEST = Object(
    *_FIELDS,
    name='ListedLeaseRequest',
    meaning='A lease that waits for room',
)
LEASE_REQUEST = Object(
    *_FIELDS,
    Field(
        'estimate',
        'First start with room as of now that delays no lease request ahead, '
        'also if it is after `latest_start_date`; null if none is known, or '
        'if the lease request does not wait',
        1767920400, DATE,
    ),
    name='LeaseRequest',
    meaning='A lease that waits for room, with the start that it may expect',
)
