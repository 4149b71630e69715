// SPDX-License-Identifier: Apache-2.0
// The dialog in which a user signs in.

import { $, fill, h } from './dom.js';
import * as session from './session.js';

const METHODS = {
  password: {
    label: 'Password',
    fields: [
      ['user', 'User', { autocomplete: 'username' }],
      ['domain', 'Domain', { value: 'Default' }],
      ['password', 'Password',
        { type: 'password', autocomplete: 'current-password' }],
    ],
    enter: ({ user, domain, password }, project) =>
      session.person({ user, domain, password }, project),
  },
  credential: {
    label: 'Application credential',
    fields: [
      ['id', 'ID', { autocomplete: 'off' }],
      ['secret', 'Secret', { type: 'password', autocomplete: 'off' }],
    ],
    enter: ({ id, secret }) => session.credential(id, secret),
  },
  token: {
    label: 'Token',
    fields: [
      ['token', 'Token of “openstack token issue”',
        { type: 'password', autocomplete: 'off' }],
    ],
    enter: ({ token }, project) => session.person({ token }, project),
  },
};
const NAME = '[A-Za-z0-9._@\\-]{1,64}';
const LOCAL = {
  fields: [
    ['user', 'User', { autocomplete: 'username', pattern: NAME }],
    ['project', 'Project (the user’s own, if empty)',
      { required: false, autocomplete: 'off', pattern: NAME }],
  ],
  enter: ({ user, project }) => session.local(user, project),
};

export class SignIn {
  constructor() {
    this.dialog = $('sign_in');
    // There is nothing to do without a user.
    this.dialog.addEventListener('cancel', (event) => event.preventDefault());
    $('methods').addEventListener('change', () => this.arrange());
    $('form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.submit();
    });
  }

  /** Return a promise of a session. */
  async ask(reason, old) {
    this.old = old;
    $('reason').textContent = reason;
    $('reason').hidden = !reason;
    $('refused').textContent = '';
    this.dialog.showModal();
    await this.choose();
    return new Promise((resolve) => {
      this.resolve = resolve;
      this.enter(async () => {
        const token = session.arrived();
        return token && session.person({ token });
      });
    });
  }

  /** Read how users sign in, until the service answers. */
  async choose() {
    for (let wait = 1; !this.settings; wait = Math.min(2 * wait, 15)) {
      try {
        this.settings = await session.settings();
      } catch (error) {
        $('refused').textContent = error.message;
        await new Promise((done) => { setTimeout(done, wait * 1000); });
      }
    }
    $('refused').textContent = '';
    const local = this.settings.auth_strategy === 'noauth';
    $('methods').hidden = local;
    $('local').hidden = !local;
    if (!$('method').value) {
      this.methods = { ...METHODS };
      for (const [label, url] of Object.entries(this.settings.websso)) {
        this.methods[`websso ${label}`] = {
          label, fields: [], enter: () => session.depart(url),
        };
      }
      fill($('method'), Object.entries(this.methods).map(
        ([name, { label }]) => h('option', { value: name }, label)));
    }
    this.arrange();
  }

  get method() {
    return this.settings.auth_strategy === 'noauth'
      ? LOCAL : this.methods[$('method').value];
  }

  arrange() {
    const known = this.old?.user.name;
    fill($('fields'), this.method.fields.map(([name, label, more]) =>
      h('label', {}, label, h('input', {
        name, required: true, spellcheck: 'false', autocapitalize: 'none',
        ...more, ...(name === 'user' && known && { value: known }),
        ...(name === 'project' && this.old
          && { value: this.old.project.id }),
      }))));
    const inputs = [...$('fields').querySelectorAll('input')];
    (inputs.find((input) => !input.value) ?? inputs[0] ?? $('enter')).focus();
  }

  submit() {
    const values = Object.fromEntries(new FormData($('form')));
    this.enter(() => this.method.enter(values, this.old?.project.id));
  }

  /** Close the dialog with the session that is made, if one is made. */
  async enter(make) {
    $('enter').disabled = true;
    $('refused').textContent = '';
    try {
      const entered = await make();
      if (!entered) return;
      // No password stays in the document.
      fill($('fields'));
      this.dialog.close();
      this.resolve(entered);
    } catch (error) {
      $('refused').textContent = error.message;
    } finally {
      $('enter').disabled = false;
    }
  }
}
