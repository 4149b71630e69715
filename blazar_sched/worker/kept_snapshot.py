# SPDX-License-Identifier: Apache-2.0
"""The snapshot file as a worker uses it: read at its start, then kept true."""

from collections.abc import Callable
import os
import time

from oslo_config import cfg
from oslo_log import log as logging

from blazar_sched.domain.settings import Settings
from blazar_sched.replica import files
from blazar_sched.replica import puller
from blazar_sched.replica import snapshot_file

LOG = logging.getLogger(__name__)
CONF = cfg.CONF


class KeptSnapshot:
    """The snapshot file of the copy of a puller.

    :param clock: returns the time by the clock of this node, epoch seconds
    """

    def __init__(
        self, puller: puller.Puller, clock: Callable[[], float]
    ) -> None:
        self._puller = puller
        self._clock = clock
        self._kept_at = float('-inf')
        # Whether the file was unusable.
        self._is_bad = False

    def load(self, now: int) -> None:
        """Load the file, if there is a usable file.

        :param now: epoch seconds
        """
        path = CONF.blazar_sched.snapshot_path
        if not path:
            return
        try:
            with snapshot_file.reading(path) as kept:
                self._start_from(kept, now)
        except FileNotFoundError:
            pass
        except (ValueError, OSError) as e:
            self._is_bad = True
            LOG.warning('Ignoring the snapshot file %s: %s', path, e)

    def _start_from(self, kept: snapshot_file.Snapshot, now: int) -> None:
        if kept.written_at > now:
            LOG.warning(
                'The snapshot file was written %d s from now: a clock was '
                'changed.', kept.written_at - now,
            )
        # A file from the future counts as being as old as it is early.
        fresh_at = time.monotonic() - abs(now - kept.written_at)
        self._puller.load(
            kept.ledger, kept.revision, kept.items, fresh_at, now,
            kept.settings,
        )

    def keep(self, at: int) -> None:
        """Bring the file up to date if an update is due.

        An update is due twice in `max_age`, so that a new worker can always
        start from the file. Of the workers that share the file, the first one
        whose update is due writes the file.

        :param at: a time at which the copy was true, epoch seconds
        """
        path = CONF.blazar_sched.snapshot_path
        due = CONF.blazar_sched.max_age / 2
        if not path or time.monotonic() - self._kept_at < due:
            return
        self._kept_at = time.monotonic()
        copy = self._puller.copy
        assert copy is not None
        revision, settings = copy.replica.revision, copy.replica.settings
        try:
            if self._is_bad or not (
                _younger(path, int(self._clock()), due)
                or _refreshed(path, copy.ledger, revision, at, settings)
            ):
                snapshot_file.write(
                    path, copy.ledger, revision, at, copy.replica.items(),
                    settings,
                )
                self._is_bad = False
        except BlockingIOError:
            LOG.debug('Another worker writes the snapshot file.')
        except Exception as e:
            # Whatever the error is, the thread must live.
            LOG.warning('Could not write the snapshot file %s: %s', path, e)


def listed_hosts() -> frozenset[str] | None:
    """Return the reservable hosts in the list beside the snapshot file."""
    path = CONF.blazar_sched.snapshot_path
    if not path:
        return None
    try:
        return snapshot_file.read_hosts(path)
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as e:
        LOG.warning(
            'Ignoring the list of reservable hosts, %s%s: %s', path,
            snapshot_file.HOSTS_SUFFIX, e,
        )
        return None


def _younger(path: str, at: int, seconds: float) -> bool:
    try:
        return abs(at - os.stat(path).st_mtime) < seconds
    except FileNotFoundError:
        return False


def _refreshed(
    path: str, ledger: str, revision: int, at: int, settings: Settings
) -> bool:
    """Return whether only the time in the snapshot file had to be changed."""
    try:
        return snapshot_file.refresh(path, ledger, revision, at, settings)
    except (files.UntrustedFileError, FileNotFoundError):
        return False
