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
# Servers among these that are stopped to be moved.
COLD = 'cold'
# Leases that leave hosts for servers that cannot be moved.
LEAVING = 'leaving'
# Hosts that are closed for a time, and vacated ahead.
MAINTENANCE = 'maintenances'
# Offers that are held, accepted and deleted.
OFFERS = 'offers'
# Leases that wait for room, and that are moved for others.
REQUESTS = 'requests'
# Leases that recur.
SERIES = 'series'
# Time that is kept between leases.
CLEANING = 'cleaning'
# Hosts that are held back for leases that lose a host.
SPARES = 'spares'
# Servers that are resized, in and out of reservations.
RESIZES = 'resizes'
# A limit on what leases have of two of the hosts together.
GROUPS = 'groups'
# Objects that a loop of a manager cannot handle.
FAULTS = 'faults'

ALL = (
    ON_END, MAGNETIC, SHARING, BEFORE_END, LIFETIMES, PREEMPTIBLE, FORCED,
    AWAY, FAILURES, UNSEEN, LARGE, KILLS, CLOCKS,
)
# The shares of worlds with features that are drawn apart, so that worlds
# without such a feature do not depend on the feature.
SHARES = {
    RELOCATION: 0.4, OFFERS: 0.4, MAINTENANCE: 0.3, REQUESTS: 0.3, SERIES: 0.3,
    SPARES: 0.3, CLEANING: 0.3, RESIZES: 0.3, FAULTS: 0.2, COLD: 0.4,
    LEAVING: 0.4, GROUPS: 0.2,
}


def draw(random, apart):
    """Return the features of a world.

    :param apart: a random stream for each feature in SHARES
    """
    likely = random.choice((0.2, 0.5))
    rare = {CLOCKS: 0.2, LARGE: 0.2}
    found = {f for f in ALL if random.random() < rare.get(f, likely)}
    found.update(
        feature for feature, share in SHARES.items()
        if apart[feature].random() < share
    )
    if RELOCATION not in found:
        found.discard(LEAVING)
    return frozenset(found)
