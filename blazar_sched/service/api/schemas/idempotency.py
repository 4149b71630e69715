# SPDX-License-Identifier: Apache-2.0
"""The header that identifies a request to create something.

A request that is repeated under the same key creates nothing more.
"""

from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Type

KEY_HEADER = 'Idempotency-Key'
HEADERS = (
    Field(
        KEY_HEADER,
        'Identifies the request: a client that received no response can '
        'repeat the request with the same key, and receives what the first '
        'request created',
        type=Type({'type': 'string', 'pattern': '^[ -~]{1,255}$'}),
    ),
)
