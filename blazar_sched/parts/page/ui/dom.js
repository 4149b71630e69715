// SPDX-License-Identifier: Apache-2.0
// Elements of the document. Every text becomes a text node, never markup.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Return a new element.
 *
 * @param {string} tag a name, with classes as in 'button.primary'
 * @param {Object} properties listeners (on…), styles, and attributes; an
 *   attribute that is null or false is left out
 * @param {...(Node|string|Array|null)} children
 */
export function h(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split('.');
  return filled(document.createElement(name), classes, properties, children);
}

export function svg(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split('.');
  return filled(
    document.createElementNS(SVG, name), classes, properties, children);
}

function filled(element, classes, properties, children) {
  element.classList.add(...classes);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith('on')) {
      element.addEventListener(name.slice(2), value);
    } else if (name === 'style') {
      Object.assign(element.style, value);
    } else if (value === true) {
      element.setAttribute(name, '');
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat(3).filter((child) => child != null));
  return element;
}

/** Replace the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(
    ...children.flat(3).filter((child) => child != null));
}

/** Show elements as the children of a list. An element that stays keeps the
 * focus, and one that replaces another has the focus of its button. */
export function arrange(list, elements) {
  const shown = new Set(elements);
  const focus = list.contains(document.activeElement)
    ? document.activeElement.getAttribute('aria-label') : null;
  for (const child of [...list.children]) {
    if (!shown.has(child)) child.remove();
  }
  elements.forEach((element, index) => {
    if (list.children[index] !== element) {
      list.insertBefore(element, list.children[index] ?? null);
    }
  });
  if (focus && !list.contains(document.activeElement)) refocus(focus);
}

/** Put the focus on the button with a label. */
export function refocus(label) {
  document.querySelector(
    `main button[aria-label="${CSS.escape(label)}"]`)?.focus();
}

/** Return a button that has to be pressed twice, about what has a name. */
export function twice(text, name, question, act) {
  let asked = false;
  const say = (said, label) => {
    button.textContent = said;
    button.setAttribute('aria-label', label);
    button.classList.toggle('danger', asked);
  };
  const forget = () => {
    asked = false;
    say(text, `${text}: ${name}`);
  };
  const button = h('button', {
    type: 'button',
    onclick: async () => {
      if (!asked) {
        asked = true;
        say(question, question);
        return;
      }
      forget();
      button.disabled = true;
      await act();
      button.disabled = false;
    },
    onblur: forget,
  });
  forget();
  return button;
}

/** Return "2 hosts" or "1 instance". */
export const amount = (count, noun) =>
  `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Return the element with an id. */
export const $ = (id) => document.getElementById(id);

/**
 * Return a function that calls `act` once no call came for `ms`; its `cancel`
 * forgets the calls that came.
 */
export function debounced(act, ms) {
  let timer;
  const later = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), ms);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** Return a function that calls `act` at most once in each frame. */
export function framed(act) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      act();
    });
  };
}
