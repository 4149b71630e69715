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
