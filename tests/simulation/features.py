# SPDX-License-Identifier: Apache-2.0
"""The optional features of a world, which each seed draws.

With all features at once most worlds would be alike.
"""

# Reservations whose servers are kept or shelved at their end.
ON_END = 'on_end'
# Reservations that draw servers without a hint.
MAGNETIC = 'magnetic'
# Reservations that several projects share.
SHARING = 'sharing'
# Actions before an end: snapshot, e-mail, webhook.
BEFORE_END = 'before_end'
# Servers with a declared end.
LIFETIMES = 'lifetimes'
PREEMPTIBLE = 'preemptible'
# Servers on hosts that a user chose, past the filters.
FORCED = 'forced'
# Nova and Placement that are unreachable for minutes.
AWAY = 'away'
# Hosts that fail, and healing.
FAILURES = 'failures'
# Servers that come and go before a manager sees them.
UNSEEN = 'unseen'
# Hosts with more of a resource class than 2**31.
LARGE = 'large'
# Managers that are killed or suspended.
KILLS = 'kills'
# Managers whose clocks are wrong.
CLOCKS = 'clocks'
# Servers without an end that are live-migrated from reserved hosts in time.
RELOCATION = 'relocation'
# Hosts that are closed for a time, and vacated ahead.
MAINTENANCE = 'maintenance'
# Offers that are held, accepted and deleted.
OFFERS = 'offers'
# Leases that wait for room, and that are moved for others.
REQUESTS = 'requests'

ALL = (
    ON_END, MAGNETIC, SHARING, BEFORE_END, LIFETIMES, PREEMPTIBLE, FORCED,
    AWAY, FAILURES, UNSEEN, LARGE, KILLS, CLOCKS,
)
# The shares of worlds with relocation, with offers, with maintenances and with
# lease requests.
_RELOCATING = 0.4
_OFFERING = 0.4
_MAINTAINING = 0.3
_REQUESTING = 0.3


def draw(random, moves, offers, maintenances, requests):
    """Return the features of a world.

    :param moves: draws whether the world has relocation, so that worlds
        without relocation do not depend on that
    :param offers: draws whether the world has offers
    :param maintenances: draws whether the world has maintenances
    :param requests: draws whether the world has lease requests
    """
    likely = random.choice((0.2, 0.5))
    rare = {CLOCKS: 0.2, LARGE: 0.2}
    found = {f for f in ALL if random.random() < rare.get(f, likely)}
    if moves.random() < _RELOCATING:
        found.add(RELOCATION)
    if offers.random() < _OFFERING:
        found.add(OFFERS)
    if maintenances.random() < _MAINTAINING:
        found.add(MAINTENANCE)
    if requests.random() < _REQUESTING:
        found.add(REQUESTS)
    return frozenset(found)
