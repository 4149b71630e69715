# SPDX-License-Identifier: Apache-2.0
"""Notes: the operations."""

from collections.abc import Callable
import uuid

from blazar_sched.domain.exception import LimitExceeded
from blazar_sched.service.bus.calls import Values
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.manager import paging
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.manager.running import Running
from note import MAX_NOTES
from note import models
from note import NOTES


class Notes:
    """The operations on notes.

    :param clock: returns the time in epoch seconds
    """

    def __init__(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._clock = clock

    def create(self, values: Values) -> Values:
        """Create a note.

        :param values: `project_id` and `text`
        :raises LimitExceeded: if the project has too many notes
        """
        new: Values = {
            'id': str(uuid.uuid4()), **values,
            'created_at': int(self._clock()),
        }

        def work(tx: Tx) -> None:
            if len(tx.run(models.list_, new['project_id'])) >= MAX_NOTES:
                raise LimitExceeded(f'a project may have {MAX_NOTES} notes')
            tx.run(models.put, new)

        self._ledger.write(work)
        return new

    def list(self, project_id: str | None) -> list[Values]:
        """Return the notes of a project, or all, by id."""
        return self._ledger.run(models.list_, project_id)

    def get(self, note_id: str, project_id: str | None) -> Values:
        """Return a note.

        :raises NotFound: if the project has no such note
        """
        return self._ledger.run(models.get, note_id, project_id)

    def delete(self, note_id: str, project_id: str | None) -> None:
        """Delete a note.

        :raises NotFound: if the project has no such note
        """
        self._ledger.write(lambda tx: tx.run(
            models.delete, note_id, project_id
        ))


def start(manager: Manager) -> Running:
    """Answer the calls for notes."""
    notes = Notes(manager.ledger, manager.clock)
    return Running({
        'create_note': notes.create, **paging.answers(NOTES, notes)
    })
