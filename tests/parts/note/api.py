# SPDX-License-Identifier: Apache-2.0
"""Notes: the fields, and the routes."""

from typing import Any
from typing import cast

import falcon

from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.times import CREATED_AT
import note

_ID = 'ID of the note'
_TEXT = Field(
    'text', 'Text of the note', 'The rack moves on Friday',
    Type(text.line(1000)),
)
NOTE = Object(
    Field('id', _ID, 'e4a7c2d8-0000-4000-8000-00000000000e'),
    Field('project_id', 'ID of the project', 'p1'), _TEXT, CREATED_AT,
    name='Note',
    meaning='A text that the members of a project leave for each other',
    columns=('id', 'text', 'created_at'),
)
_CREATE = validation.by_version(Object(_TEXT).schema)


def create_note(req: falcon.Request, caller: Caller) -> dict[str, Any]:
    """Create a note of the project."""
    body = req.media
    validation.check_body(_CREATE, caller.version, body)
    return cast(note.Calls, caller.manager).create_note(
        values={**body, 'project_id': caller.project_id}
    )


NOTES = Collection(
    '/v1/notes', Field('note_id', _ID), 'note', 'notes', 'blazar:notes',
    PROJECT_READER_OR_ADMIN, PROJECT_MEMBER_OR_ADMIN, NOTE,
    since=microversion.V1_1, calls=note.NOTES,
)
ROUTES = (
    NOTES.to_list(
        'List the notes of the project, or of all projects for an admin.'
    ),
    NOTES.to_create(create_note, _CREATE),
    NOTES.to_show('Show a note.'),
    NOTES.to_delete('Delete a note.'),
)
