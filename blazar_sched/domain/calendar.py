# SPDX-License-Identifier: Apache-2.0
"""A calendar: a link at which programs read the leases of a project."""

import dataclasses
import hashlib
import secrets

# The most calendars of a project, and the most characters of a name.
MAX_CALENDARS = 10
MAX_NAME = 255
# A calendar has the leases of so many seconds before and after the present,
# and the first of them only, if there are more.
PAST = 31 * 86400
FUTURE = 366 * 86400
MAX_LEASES = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Calendar:
    """A calendar of a project.

    :param digest: the digest of the token in the link, which is not kept
    """

    id: str
    project_id: str
    name: str
    digest: str
    created_at: int


def new_token() -> str:
    """Return a random token, of characters that a URL can have."""
    return secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """Return the digest by which the calendar of a token is found.

    How long the search takes says nothing of the tokens that there are: who
    guesses a token cannot choose its digest.
    """
    return hashlib.sha256(token.encode()).hexdigest()
