/** Small things kept in this browser: the tier last played, what is half typed. What counts is on the server. */

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

/** A file of the browser's own making: nothing is asked of the server. @param {string | Blob} data @param {string} name */
export function saveAs(data, name, type = "application/json") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([data], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Colors. The server keeps them; the copy here is for the first paint (theme.js). @param {"system" | "light" | "dark"} theme */
export function paint(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (localStorage.getItem("stockade-theme") !== theme) localStorage.setItem("stockade-theme", theme);
  } catch {
    // Storage forbidden: until the server has answered, the system's choice holds.
  }
}
