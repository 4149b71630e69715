# SPDX-License-Identifier: Apache-2.0
"""A held offer is held as it was offered, until it lapses."""

from tests.simulation import looks
from tests.simulation.promises import registry

# Seconds by which the clocks of managers may differ.
SKEW = 60


@registry.promise_of_ledger()
def a_held_offer_is_there(world):
    held = {offer.id: offer for offer in world.ledger.offers(None)}
    for id_, known in world.offers.items():
        offer = held.get(id_)
        if offer is None:
            if is_held(known, world.time):
                yield f'the held offer {id_} is not there'
            continue
        window = looks.shown(offer.start), looks.shown(offer.end)
        if window != known['window']:
            yield f'offer {id_}: held {known["window"]}, is {window}'


def is_held(known, at):
    """Tell whether an offer is held, whatever a manager's clock says."""
    return 'gone' not in known and at < known['until'] - SKEW
