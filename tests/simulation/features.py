# SPDX-License-Identifier: Apache-2.0
"""What a world may have beside the plain: each has some, as its seed says.

With all of them at once most worlds would be alike.
"""

# Reservations whose servers are kept, or shelved, at their end.
ON_END = 'on_end'
# Reservations that draw servers without a hint.
MAGNETIC = 'magnetic'
# Reservations that several projects share.
SHARING = 'sharing'
# What is done before an end: snapshot, e-mail, webhook.
BEFORE_END = 'before_end'
# Servers with an end of their own.
LIFETIMES = 'lifetimes'
PREEMPTIBLE = 'preemptible'
# Servers on hosts that somebody named, past the filters.
FORCED = 'forced'
# Nova and Placement not to be reached for minutes.
AWAY = 'away'
# Hosts that fail, and what heals.
FAILURES = 'failures'
# Servers that come and go before a manager has looked.
UNSEEN = 'unseen'
# Hosts with more of a resource class than 2**31.
LARGE = 'large'
# Managers that are killed, or stand still.
KILLS = 'kills'
# Managers whose clocks are wrong.
CLOCKS = 'clocks'

ALL = (
    ON_END, MAGNETIC, SHARING, BEFORE_END, LIFETIMES, PREEMPTIBLE, FORCED,
    AWAY, FAILURES, UNSEEN, LARGE, KILLS, CLOCKS,
)


def draw(random):
    """Return the features of a world."""
    likely = random.choice((0.2, 0.5))
    rare = {CLOCKS: 0.2, LARGE: 0.2}
    return frozenset(
        f for f in ALL if random.random() < rare.get(f, likely)
    )
