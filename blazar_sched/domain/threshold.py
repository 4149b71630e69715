# SPDX-License-Identifier: Apache-2.0
"""A threshold: the least number of free hosts or instances that is usual."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold of the capacity of some hosts.

    The number that is compared is the capacity that `project_id` has for a
    lease that begins now and lasts `within` seconds: of hosts, or of instances
    of a flavor.

    :param id: the same for the same fields from `name` to `within`
    :param project_id: '' for a project to which no host is restricted
    :param within: seconds, 0 for the present second
    :param low: whether the number was less than `below` when it was compared
    :param since: when `low` was last changed, 0 if never
    :param free: the number at that time
    :param notify_at: when the notification of that change is to be sent, None
        once it is sent
    :param post_at: likewise for the request to the webhook
    """

    id: str
    name: str
    project_id: str
    resource_properties: str
    flavor_id: str | None
    below: int
    within: int
    low: bool = False
    since: int = 0
    free: int = 0
    notify_at: int | None = None
    post_at: int | None = None
