/** The server's JSON API, one function a call. A refusal is thrown as `Refused`. */

export class Refused extends Error {
  /** @param {number} status @param {{error: string, message: string, hint?: string}} body */
  constructor(status, body) {
    super(body.message);
    this.status = status;
    this.code = body.error;
    this.hint = body.hint ?? null;
    this.body = body;
  }
}

async function call(method, path, body) {
  let answer;
  try {
    answer = await fetch(`/api${path}`, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
    });
  } catch {
    throw new Refused(0, { error: "no-server", message: "The lab's server does not answer. If it was started again, open the address that it has printed now." });
  }
  const said = await answer.json().catch(() => null);
  if (answer.ok) return said;
  throw new Refused(answer.status, said?.message ? said : { error: "odd-answer", message: `The server answered ${answer.status}.` });
}

const get = (path) => call("GET", path);
const post = (path, body = {}) => call("POST", path, body);
const put = (path, body) => call("PUT", path, body);

export const api = {
  state: () => get("/state"),
  changeSettings: (changed) => put("/settings", changed),
  switchLearner: (name) => post("/learners", { name }),
  card: () => get("/card"),
  startRound: (tier, seed) => post("/rounds", seed ? { tier, seed } : { tier }),
  startDrill: (kind) => post("/drills", { kind }),
  round: (id) => get(`/rounds/${id}`),
  answer: (id, answer) => post(`/rounds/${id}/answers`, answer),
  hint: (id, index) => post(`/rounds/${id}/hints`, { index }),
  show: (id, index) => post(`/rounds/${id}/show`, { index }),
  leave: (id) => post(`/rounds/${id}/leave`),
  debrief: (id) => get(`/rounds/${id}/debrief`),
  saveNote: (id, key, text) => put(`/rounds/${id}/notes`, { key, text }),
  gaps: async () => (await get("/gaps")).gaps,
  addGap: (text, from) => post("/gaps", { text, from }),
  changeGap: (id, change) => put(`/gaps/${id}`, change),
  runIt: (what) => post("/live", what),
  liveLine: () => get("/live"),
  lint: (text) => post("/policy/lint", { text }),
  replay: (text) => post("/policy/replay", { text }),
  policy: () => get("/policy"),
  policyStart: () => get("/policy/start"),
  savePolicy: (text) => put("/policy", { text }),
  progress: () => get("/progress"),
  reset: () => post("/progress/reset", { confirm: "reset" }),
  workshop: () => get("/workshop"),
  saveWorkshop: (state) => put("/workshop", state),
  verifyWorkshop: (path) => post("/workshop/verify", { path }),
};

/** Addresses that the browser loads itself. */
export const links = {
  result: (id) => `/api/rounds/${id}/result`,
  shareCard: (id) => `/api/rounds/${id}/card.svg`,
  export: () => "/api/progress/export",
  workshopRecord: () => "/api/workshop/record",
};
