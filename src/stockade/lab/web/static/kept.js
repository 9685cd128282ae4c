/** Small things kept in this browser alone: theme, shortcuts, what is half typed. What counts is on the server. */

/** @param {string} name @param {any} fallback */
export function recall(name, fallback, store = localStorage) {
  try {
    const text = store.getItem(`stockade-${name}`);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback; // storage forbidden, or text that is not ours
  }
}

/** Keep a value; `null` forgets it. @param {string} name @param {any} value */
export function keep(name, value, store = localStorage) {
  try {
    if (value === null) store.removeItem(`stockade-${name}`);
    else store.setItem(`stockade-${name}`, JSON.stringify(value));
  } catch {
    // Storage forbidden or full: the choice lasts until the page is left.
  }
}
