# SPDX-License-Identifier: Apache-2.0
"""Blazar 18's leases, hosts and floating IPs, taken over into the ledger.

A noun that is taken over is as one that our own API has made, with its id:
what Blazar has made for it in other services is used on, and removed by its
end. What cannot be kept so is refused, and told.
"""
