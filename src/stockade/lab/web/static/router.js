/** Hash routes: `#/round/ID/debrief` is `["round", ID, "debrief"]`. They work offline and need nothing of the server. */

import { useEffect, useState } from "./vendor/preact-htm.js";

/** @returns {string[]} */
export const parseRoute = (hash) => hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decode);

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a lone % is text, not a fault
  }
}

export const href = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

export const go = (...parts) => {
  location.hash = href(...parts);
};

export function useRoute() {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const follow = () => setRoute(parseRoute(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}
