// SPDX-License-Identifier: Apache-2.0
// The dialog in which something is changed. It stays open until the service
// has accepted the change, so that nothing has to be typed again.

import { $, fill, h, refocus } from './dom.js';
import { refusal } from './obstacle.js';

/**
 * Ask for values.
 *
 * @param {Array} fields {name, label, value} with `choices` as [value, label],
 *   or with attributes of an <input>
 * @param {function} act gets the values and `refuse(error)`, and returns a
 *   promise of whether it was done, or of the element that gets the focus
 */
export function edit(title, fields, verb, act) {
  const dialog = $('editor');
  const opener = document.activeElement?.getAttribute('aria-label');
  const answer = h('p.bad', { role: 'alert' });
  let next = null;
  const button = h('button.primary', {}, verb);
  const form = h('form', {
    onsubmit: async (event) => {
      event.preventDefault();
      if (button.disabled) return;
      const values = Object.fromEntries(
        [...new FormData(form)].map(([name, value]) => [name, value.trim()]));
      button.disabled = true;
      answer.textContent = 'Waiting for the answer…';
      let reason = '';
      const done = await act(values, (error) => { reason = refusal(error); });
      answer.textContent = reason;
      button.disabled = false;
      // Another dialog may have been opened meanwhile.
      if (!done || !form.isConnected) return;
      next = done instanceof Element ? done : null;
      dialog.close();
    },
  },
  h('h2', { id: 'editor_title' }, title), fields.map(field), answer,
  h('div.actions', {}, button, h('button', {
    type: 'button', onclick: () => dialog.close(),
  }, 'Back')));
  fill(dialog, form);
  // What has opened the dialog may have been drawn again.
  dialog.onclose = () => {
    fill(dialog);
    if (next) next.focus();
    else if (opener) refocus(opener);
  };
  dialog.showModal();
}

function field({ label, choices, value, ...more }) {
  return h('label', {}, label, choices
    ? h('select', more, choices.map(([each, text]) =>
      h('option', { value: each, selected: each === value }, text)))
    : h('input', { required: true, spellcheck: 'false', value, ...more }));
}
