/** The closed words: their letters, shapes and order. Never color alone: a letter, a shape and the word. */

import { html } from "./vendor/preact-htm.js";

const SHOWN = { allow: "allow", proxy: "proxy+log", deny: "deny" };
const LETTER = { allow: "A", proxy: "P", deny: "D" };

export const shown = (verdict) => SHOWN[verdict] ?? verdict ?? "–";

/** Keys for the risks: free of 1–3, and of the keys c, h, n and r, which do other things. */
const RISK_KEYS = {
  benign: "b", exfiltration: "e", ssrf: "s", "eval-contamination": "v", "supply-chain": "u",
  "metadata-credentials": "m", "boundary-tampering": "t",
};
export const riskKey = (risk) => RISK_KEYS[risk] ?? null;

/** The controls in the order in which they are offered. What a pack adds comes last. */
const GROUPS = [
  ["The list", ["allowlist-exact", "default-deny", "operation-scope", "scheme-and-port-scope", "logging-proxy"]],
  ["When, who, how much", ["phase-policy", "separate-identity", "credential-broker", "size-rate-quota"]],
  ["Names", ["canonicalise-host", "name-consistency", "own-resolver-only"]],
  ["Addresses", ["check-resolved-address", "deny-link-local-metadata", "deny-internal-ranges", "recheck-redirects"]],
  ["Packages and chatter", ["vetted-mirror-pinned", "no-install-time-code", "telemetry-off", "host-provided-service"]],
  ["The machine", ["exec-deny", "no-control-sockets", "namespace-isolation", "browser-hardening"]],
];

/** @param {{word: string, help: string}[]} controls @returns {{name: string, controls: {word, help, key}[]}[]} */
export function groupControls(controls) {
  const left = new Map(controls.map((one) => [one.word, one]));
  const groups = GROUPS.map(([name, words]) => ({
    name,
    controls: words.filter((word) => left.has(word)).map((word) => {
      const one = left.get(word);
      left.delete(word);
      return one;
    }),
  }));
  groups.push({ name: "Others", controls: [...left.values()] });
  let count = 0;
  for (const group of groups) {
    group.controls = group.controls.map((one) => ({ ...one, key: count < 26 ? String.fromCharCode(97 + count++) : null }));
  }
  return groups.filter((group) => group.controls.length);
}

/** The outline of a verdict inside a box of 16 by 16, round its middle. */
export function shapeOf(verdict, props) {
  if (verdict === "allow") return html`<circle cx="8" cy="8" r="6.5" ...${props} />`;
  if (verdict === "proxy") return html`<path d="M8 .8 15.2 8 8 15.2 .8 8z" ...${props} />`;
  return html`<rect x="1.8" y="1.8" width="12.4" height="12.4" ...${props} />`;
}

export const VerdictMark = ({ verdict }) => html`<span class=${`verdict ${verdict}`}>
    <svg class="shape" viewBox="0 0 16 16" aria-hidden="true">${shapeOf(verdict)}
      <text x="8" y="11.2" text-anchor="middle">${LETTER[verdict] ?? "?"}</text></svg>
    <span>${shown(verdict)}</span></span>`;

export const RiskMark = ({ risk }) => html`<span class=${`risk ${risk}`}>
    <span class="letter" aria-hidden="true">${(riskKey(risk) ?? "?").toUpperCase()}</span>
    <span>${risk}</span></span>`;

const MARKS = { true: ["right", "M3 8.5 6.5 12 13 4.5"], half: ["half right", "M3 8h10"], false: ["wrong", "M4 4l8 8M12 4l-8 8"] };

/** Right, half right or wrong: a sign and the word. @param {{value: true | false | "half", whole?: boolean, word?: string}} props `word` replaces ours */
export function RightMark({ value, whole = false, word: other }) {
  const [plain, path] = MARKS[String(value)];
  const word = other ?? (whole && value === "half" ? "partly right" : plain);
  return html`<span class=${`mark is-${String(value)}`}>
    <svg class="shape" viewBox="0 0 16 16" aria-hidden="true"><path d=${path} /></svg><span>${word}</span></span>`;
}

/** @returns {true | false | "half"} the whole of an answer */
export function wholeOf(right) {
  const parts = [right.decision, right.risk, right.control];
  if (parts.every((one) => one === true)) return true;
  return right.decision === false ? false : "half";
}
