# SPDX-License-Identifier: Apache-2.0
"""Waiting for events, however busy the machine is."""

from collections.abc import Callable
from concurrent import futures
import subprocess
import threading
import time
from typing import Any
from typing import TypeVar

import requests

from tests import serving

# Seconds: a wait for an event costs nothing if the event comes early.
PATIENCE = 240
PAUSE = 0.02

T = TypeVar('T')


def until(probe: Callable[[], T], shown: Callable[[], object] = str) -> T:
    """Return the result of `probe` as soon as the result is true.

    :param shown: returns what is shown if that takes too long
    """
    deadline = time.monotonic() + PATIENCE
    while not (found := probe()):
        assert time.monotonic() < deadline, shown()
        time.sleep(PAUSE)
    return found


def at_once(*tasks: Callable[[], T]) -> list[T]:
    """Do tasks in threads that begin together; return what each returns."""
    ready = threading.Barrier(len(tasks))

    def begin(task: Callable[[], T]) -> T:
        ready.wait(PATIENCE)
        return task()

    with futures.ThreadPoolExecutor(len(tasks)) as pool:
        begun = [pool.submit(begin, task) for task in tasks]
    return [each.result() for each in begun]


def response(
    process: subprocess.Popen[str], url: str, **kwargs: Any
) -> requests.Response:
    """GET until the server responds, which runs in a process."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return requests.get(
                url, headers=serving.ADMIN, timeout=PATIENCE, **kwargs
            )
        except requests.ConnectionError:
            assert process.poll() is None, (
                process.stdout and process.stdout.read()
            )
            assert time.monotonic() < deadline
            time.sleep(PAUSE)
