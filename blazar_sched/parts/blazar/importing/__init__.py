# SPDX-License-Identifier: Apache-2.0
"""Import of Blazar 18's leases, hosts and floating IPs into the ledger.

An imported entity keeps its id and is like an entity created with this
service's own API: the objects that Blazar has created for the entity in other
services stay in use, and are removed when the entity ends. An entity that
cannot be imported in this way is refused and reported.
"""
