// SPDX-License-Identifier: Apache-2.0
// Book, list and delete a lease with what openapi-ts has made.

import { createLease, deleteLease, listLeases } from './gen';
import { createClient } from './gen/client';

const client = createClient({
  baseUrl: process.argv[2], headers: { 'X-Auth-Token': 'alice:p1' },
});
const headers = { 'OpenStack-API-Version': 'reservation 1.2' } as const;
const list = async () => (await listLeases({ client, headers })).data!.leases;

const create = (hosts: number) => createLease({ client, headers, body: {
  name: 'run', start_date: '2030-01-01T00:00:00Z', duration: '1h',
  reservations: [{ resource_type: 'physical:host', min: hosts, max: hosts }],
} });

async function main() {
  const made = await create(1);
  if (made.error) throw new Error(made.error.error_message);
  const { id, status } = made.data.lease;
  const names = (await list()).map(({ name }) => name);
  await deleteLease({ client, headers, path: { lease_id: id } });
  const left = (await list()).length;
  const refusal = (await create(9)).error?.error_name;
  console.log(JSON.stringify([status, names, left, refusal]));
}

main();
