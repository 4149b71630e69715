# SPDX-License-Identifier: Apache-2.0
"""The player of seeds: each seed is a world over a copy of an empty ledger."""

import logging
import pathlib
import tempfile
import traceback

from blazar_sched.service.ledger.ledger import Ledger
from tests.simulation import world


class Player:
    """A player of seeds in a directory of its own, in memory if possible."""

    def __init__(self):
        shared = pathlib.Path('/dev/shm')
        self._directory = tempfile.TemporaryDirectory(
            dir=shared if shared.is_dir() else None
        )
        self._empty = f'{self._directory.name}/empty'
        # The world that was played last.
        self.world = None
        ledger = Ledger(f'sqlite:///{self._empty}')
        ledger.upgrade()
        ledger.close()

    def play(self, seed, features=None, often=()):
        """Return the history of a world, and the broken promise or None."""
        played = world.World(
            seed, self._empty, self._directory.name, features, often
        )
        self.world = played
        # The errors that are provoked on purpose are logged at length.
        logging.disable()
        try:
            played.run()
        except Exception:
            return played.trace, traceback.format_exc()
        finally:
            logging.disable(logging.NOTSET)
            for path in pathlib.Path(self._directory.name).glob(f'{seed}.*'):
                path.unlink()
        return played.trace, None

    def close(self):
        self._directory.cleanup()
