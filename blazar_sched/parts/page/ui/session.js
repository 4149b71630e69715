// SPDX-License-Identifier: Apache-2.0
// Who is signed in. Tokens are kept in this module only: they are gone when
// the page is closed or loaded again. A sign-in by Keystone's federation leaves
// the page; that it began in this tab is all that is stored.

import { documentOf, Refused } from './api.js';

// Seconds before its end from which a token counts as expired.
const MARGIN = 10;
// When a sign-in by federation began, and the milliseconds that it may last.
const BEGUN = 'websso';
const LONGEST = 600_000;

async function send(method, path, token, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method, credentials: 'omit', cache: 'no-store',
      headers: {
        'Accept': 'application/json',
        ...(body && { 'Content-Type': 'application/json' }),
        ...(token && { 'X-Auth-Token': token }),
      },
      body: body && JSON.stringify(body),
    });
  } catch {
    throw new Error('The service does not answer.');
  }
  const document = await documentOf(answer);
  if (!answer.ok) throw new Refused(answer.status, document);
  return document;
}

/** Return what the service says before anybody signs in. */
export const settings = () => send('GET', 'settings');

/** A user in a project: `token`, `user`, `project`, `projects`. */
class Session {
  constructor({ id, user, project, expires_at: expires }, projects, base) {
    this.token = id;
    this.user = user;
    this.project = project;
    this.projects = projects;
    this.expires = expires ? Date.parse(expires) / 1000 - MARGIN : Infinity;
    // The token with which another project is entered.
    this.base = base;
  }

  /** Return the session of the same user in another project. */
  async enter(projectId) {
    const { token } = await send('POST', 'token', null, {
      token: this.base, project_id: projectId,
    });
    return new Session(token, this.projects, this.base);
  }

  /** Make the tokens invalid. */
  async end() {
    const tokens = new Set([this.token, this.base].filter(Boolean));
    if (this.base === null) return;
    await Promise.allSettled(
      [...tokens].map((token) => send('DELETE', 'token', token)));
  }
}

/** Sign in without Keystone, on the service's own machine. */
export function local(user, project) {
  const own = { id: project || user, name: project || user };
  const token = { id: `${user}:${own.id}`, user: { id: user, name: user } };
  return new Session({ ...token, project: own }, [own], null);
}

/** Sign in with an application credential, which has a project. */
export async function credential(id, secret) {
  const { token } = await send('POST', 'token', null, {
    application_credential_id: id, secret,
  });
  return new Session(token, [token.project], token.id);
}

/** Leave for a sign-in at a URL of Keystone, which sends a token back. */
export function depart(url) {
  sessionStorage.setItem(BEGUN, String(Date.now()));
  const there = new URL(url);
  there.searchParams.set('origin', new URL('websso', location.href).href);
  location.assign(there);
  return new Promise(() => {});
}

/** Return the token that Keystone has sent, or null.
 *
 * Any site can send a form with a token of its own, so that what the user
 * books belongs to somebody else: a token counts only in the tab that left.
 */
export function arrived() {
  const sent = document.querySelector('meta[name=token]');
  if (!sent) return null;
  sent.remove();
  history.replaceState(null, '', './');
  const begun = Number(sessionStorage.getItem(BEGUN));
  sessionStorage.removeItem(BEGUN);
  if (!(Date.now() - begun < LONGEST)) {
    throw new Error('This sign-in did not begin in this tab, or took too long.');
  }
  return sent.content;
}

/** Sign in with a password, or with another token of the user. */
export async function person(form, wanted) {
  const { token: base } = await send('POST', 'token', null, form);
  const { projects } = await send('GET', 'projects', base.id);
  if (!projects.length) throw new Error('This user has no project.');
  projects.sort((a, b) => a.name.localeCompare(b.name));
  const first = projects.find(({ id }) => id === wanted) ?? projects[0];
  return new Session(base, projects, base.id).enter(first.id);
}
