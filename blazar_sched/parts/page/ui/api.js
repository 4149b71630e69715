// SPDX-License-Identifier: Apache-2.0
// The REST API of the service. Nothing else is asked.

const VERSION = 'reservation 1.2';
// Seconds until the service is asked again after it did not answer.
const FIRST_RETRY = 1;
const LAST_RETRY = 15;
// The most responses that are kept.
const MOST_KNOWN = 50;

/** A request that the service refused: `status`, `name` and `body`. */
export class Refused extends Error {
  constructor(status, body) {
    // The name of the field is the API's, not the page's.
    super(body?.error_message?.replace(/^[a-z_]+: /, '')
      ?? `The service answered ${status}.`);
    this.status = status;
    this.name = body?.error_name ?? 'Refused';
    this.body = body ?? {};
  }
}

/** A request without an answer. */
export class Away extends Error {}

export class Api {
  /**
   * @param {Object} on `expired()` is called when the token is refused, and
   *   has to return a promise of another sign-in; `away(seconds)` and
   *   `back()` when the service stops and starts to answer
   */
  constructor(on) {
    this.on = on;
    this.token = null;
    // The user and the project of the token.
    this.scope = null;
    this.isAway = false;
    this.retry = FIRST_RETRY;
    // The last responses by path: {etag, document}.
    this.known = new Map();
  }

  async get(path, query = {}, options = {}) {
    const text = new URLSearchParams(
      Object.entries(query).filter(([, value]) => value != null)).toString();
    const whole = text ? `${path}?${text}` : path;
    if ('etag' in options) return this.send('GET', whole, options);
    const known = this.known.get(whole);
    const found = await this.send(
      'GET', whole, { ...options, etag: known?.etag ?? null }) ?? known;
    this.known.delete(whole);
    this.known.set(whole, found);
    if (this.known.size > MOST_KNOWN) {
      this.known.delete(this.known.keys().next().value);
    }
    return structuredClone(found.document);
  }

  /** Send a POST; with the same `key` in `options`, it is done once. */
  post(path, body, options = {}) {
    return this.send('POST', path, { ...options, body });
  }

  put(path, body, options = {}) {
    return this.send('PUT', path, { ...options, body });
  }

  delete(path) {
    return this.send('DELETE', path);
  }

  /**
   * Send a request with the token; return the document of the answer.
   *
   * @param {Object} options `body`, `signal`, `key`, and `etag` of a document that
   *   the caller has: the result is then {etag, document}, or null if the
   *   document is unchanged
   */
  async send(method, path, options = {}) {
    const { token, scope } = this;
    const answer = await this.fetch(method, path, options);
    if (answer.status === 401) {
      // Another request may have led to a new token meanwhile.
      if (this.token === token) await this.on.expired();
      this.same(scope);
      return this.send(method, path, options);
    }
    const document = answer.status === 304 ? null : await documentOf(answer);
    this.same(scope);
    if (answer.status === 304) return null;
    if (!answer.ok) throw new Refused(answer.status, document);
    if (!('etag' in options)) return document;
    return { etag: answer.headers.get('ETag'), document };
  }

  /** Nothing is shown or done for another project than was asked for. */
  same(scope) {
    if (this.scope !== scope) {
      throw new DOMException('another user or project', 'AbortError');
    }
  }

  async fetch(method, path, { body, signal, key, etag }) {
    const headers = {
      'Accept': 'application/json',
      'OpenStack-API-Version': VERSION,
      'X-Auth-Token': this.token,
    };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    if (key) headers['Idempotency-Key'] = key;
    if (etag) headers['If-None-Match'] = etag;
    try {
      const answer = await fetch(`../v1${path}`, {
        method, headers, signal, body: body && JSON.stringify(body),
        // The token is in its header; there is no cookie.
        credentials: 'omit', cache: 'no-store',
      });
      if (answer.status === 502 || answer.status === 504) {
        throw new TypeError('the proxy has no answer');
      }
      this.answered();
      return answer;
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      this.unanswered();
      throw new Away('The service does not answer.');
    }
  }

  answered() {
    this.retry = FIRST_RETRY;
    if (!this.isAway) return;
    this.isAway = false;
    this.on.back();
  }

  unanswered() {
    this.isAway = true;
    this.on.away(this.retry);
    this.retry = Math.min(2 * this.retry, LAST_RETRY);
  }
}

/** Return a new idempotency key. */
export const newKey = () =>
  crypto.getRandomValues(new Uint32Array(4)).join('-');

/** Return the JSON document of an answer, null if there is none. */
export async function documentOf(answer) {
  if (answer.status === 204) return null;
  try {
    return await answer.json();
  } catch {
    return null;
  }
}
