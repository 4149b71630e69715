# SPDX-License-Identifier: Apache-2.0
"""Files of the workers, opened without trust in the folder they are in.

No link is followed. Only regular files are read or written, so that no open
blocks. No file that another user may write is read.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import fcntl
import os
import stat
from typing import IO

_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ROOT = 0


class UntrustedFileError(ValueError):
    """A file that is not regular, or that another user may write."""


@contextlib.contextmanager
def opened(
    path: str, mode: str = 'rb', any_owner: bool = False
) -> Iterator[IO[bytes]]:
    """Open the file at `path`.

    :param mode: 'rb' to read, 'r+b' to overwrite as well
    :param any_owner: whether a file that belongs to another user is read too
    :raises UntrustedFileError: if the file cannot be trusted
    :raises OSError: if the file cannot be opened
    """
    with open(path, mode, opener=_opener(0)) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise UntrustedFileError('the file is not a regular file')
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise UntrustedFileError(
                'other users can write the file: mode '
                f'{stat.S_IMODE(found.st_mode):o}'
            )
        if not any_owner and found.st_uid not in (os.geteuid(), _ROOT):
            raise UntrustedFileError(f'user {found.st_uid} owns the file')
        yield file


@contextlib.contextmanager
def locked(path: str) -> Iterator[None]:
    """Lock the file at `path`, so that no other process writes the file.

    The lock is held on a separate file, and is released when its process
    ends.

    :raises BlockingIOError: if another process has the lock
    :raises OSError: if the lock file cannot be opened
    """
    lock = os.open(f'{path}.lock', os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def replacing(path: str, mode: int = 0o600) -> Iterator[IO[bytes]]:
    """Open a new file that replaces the file at `path` after the block.

    The caller has to hold the lock of `locked`. The new file always has the
    same name, so that a process that is killed meanwhile leaves at most one
    new file behind.

    :param mode: permissions of the new file
    :raises OSError: if the file cannot be written
    """
    new = f'{path}.new'
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)
    with open(new, 'xb', opener=_opener(mode)) as file:
        try:
            os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(new, path)
        except BaseException:
            os.unlink(new)
            raise


def _opener(permissions: int) -> Callable[[str, int], int]:
    def opener(path: str, flags: int) -> int:
        return os.open(path, flags | _FLAGS, permissions)

    return opener
