# SPDX-License-Identifier: Apache-2.0
"""Thresholds: handlers that translate requests into calls to the manager."""

from typing import Any

import falcon

from blazar_sched.service.api import listing
from blazar_sched.service.api import requirement
from blazar_sched.service.api import times
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.schemas import threshold as schemas
from blazar_sched.service.api.views.threshold import THRESHOLD

Body = dict[str, Any]


def list_thresholds(req: falcon.Request, caller: Caller) -> Body:
    """List the thresholds."""
    found = listing.whole(caller.manager.list_thresholds)
    return {
        'thresholds': [
            THRESHOLD.show(each, caller.version) for each in found
        ]
    }


def show_threshold(
    req: falcon.Request, caller: Caller, threshold_id: str
) -> Body:
    """Show a threshold, with the present number."""
    found = caller.manager.get_threshold(threshold_id=threshold_id)
    return {'threshold': THRESHOLD.show(found, caller.version)}


def create_threshold(req: falcon.Request, caller: Caller) -> Body:
    """Create a threshold of the capacity of hosts.

    The operator is notified once when the number of hosts, or of instances of
    the flavor, that a lease from now on could get is less than `below`; and
    once when it is not any more.
    """
    body = req.media
    validation.check_body(schemas.CREATE, caller.version, body)
    properties = body.get('resource_properties', '')
    requirement.check(caller, properties, 'resource_properties')
    made = caller.manager.create_threshold(
        values={
            'name': body['name'],
            'project_id': body.get('project_id', caller.project_id),
            'resource_properties': properties,
            'flavor_id': body.get('flavor_id'),
            'below': body['below'],
            'within': times.read_duration(body, 'within') or 0,
        },
    )
    caller.context.resource_uuid = made['id']
    return {'threshold': THRESHOLD.show(made, caller.version)}


def delete_threshold(
    req: falcon.Request, caller: Caller, threshold_id: str
) -> None:
    """Delete a threshold."""
    caller.manager.delete_threshold(threshold_id=threshold_id)
