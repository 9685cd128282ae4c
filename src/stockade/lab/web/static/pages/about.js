/** What the lab teaches and where it comes from. Sources outside are named and not linked: the lab works offline. */

import { html, useEffect } from "../vendor/preact-htm.js";
import { Contents, Section, show } from "./prose.js";

const SECTIONS = [
  {
    id: "about-teaches",
    title: "What this teaches",
    body: [
      "An AI agent has an executor: the part that runs commands, opens pages and sends requests. It keeps reaching out, and somebody has to say what may leave. You are that somebody here.",
      "Each call has three parts.",
      {
        words: [
          ["decision", "What happens to this attempt: `allow`, `proxy+log` or `deny`."],
          ["risk", "What it would lead to if it got through and were meant badly, or that there is nothing of the kind."],
          ["control", "The one protection that fits best. Whoever can name it has understood why; whoever only says no has not."],
        ],
      },
      "Default-deny is not deny-everything. What nobody listed does not leave. What is listed has to leave, or the agent cannot work, and people switch the protection off. So a wrong block costs points too, 25 where a leak costs 50, and nearly half of every round is legitimate. Whoever denies everything gets a D, and so does whoever allows everything.",
      "The parts are scored apart, since people are often right without knowing why: 50 points for the decision, 30 for the control, 20 for the risk.",
    ],
  },
  {
    id: "about-points",
    title: "How points and grades work",
    body: [
      {
        caption: "Points of one event, at most 100",
        head: ["For", "Points"],
        rows: [
          ["the decision right", "50"],
          ["`proxy+log` for `allow`, or the reverse", "25"],
          ["a denied event let through (a leak)", "−50"],
          ["a legitimate event denied (a wrong block)", "−25"],
          ["the control right", "30"],
          ["the risk right", "20"],
          ["speed, if all three are right and no paid hint was taken", "at most 10"],
          ["hints", "the first is free, then −5, then −15"],
        ],
      },
      "A grade goes by the percentage, the leaks and the wrong blocks together. An S takes 95 % and neither; an A 85 %, no leak and one wrong block at most. Whoever denies everything gets a D, and so does whoever allows everything.",
    ],
  },
  {
    id: "about-axes",
    title: "Risk and decision are two questions",
    body: [
      "“Is it dangerous?” and “may it leave?” are different questions. The easy half of the lab is where both have the same answer. The other half is here:",
      {
        caption: "One example each way",
        head: ["Attempt", "Risk", "Decision", "Why"],
        rows: [
          [
            "`GET http://blog.tutorials.example/asyncio`",
            "benign",
            "deny",
            "It may well be harmless. Nobody listed it, and a list that grows by guessing is no list. The answer is to ask for the entry, with an owner.",
          ],
          [
            "`GET https://docs.framework.test/guide/`, again and again, with another User-Agent each time",
            "exfiltration",
            "proxy+log",
            "Each request is permitted in form and exceeds no limit. It passes, and the record is what shows the pattern.",
          ],
        ],
      },
      "So do not deduce one part from the other. Read the card for the decision, and ask what would come of it for the risk.",
    ],
  },
  {
    id: "about-real",
    title: "Is the unrestricted executor based on something real?",
    body: [
      "Yes. Harness² is a framework of Google Research for improving the programs around a model (repository `google-research/harness2`, Apache-2.0; its disclaimer says that it is no officially supported product). It says openly how its executor runs, and we read that ourselves:",
      {
        list: [
          "The README says that the executor's network is not restricted and that Codex runs with its own sandbox disabled. It asks users to restrict the network before they evaluate, so that answers and grading criteria stay out of reach.",
          "`docs/EXPERIMENTS.md` says that one benchmark publishes the grading rubric of each task on a public hub. In a validation run an agent downloaded the rubric of its own task, and nobody had told it to.",
          "The same page names the hosts to close for the executor after setup, asks for restrictions in the network rather than in a tool's settings, and asks that they be reported beside the results. Setup itself needs those same hosts.",
        ],
      },
      "That is this lab in small: the same place is right in one phase and wrong in the next, and the closing has to be done where the agent cannot undo it. Say it fairly: the authors describe the danger and the remedy themselves. Running an executor open is common, and saying so is not.",
      "The paper that belongs to it is given as arXiv 2610.14224. We could not confirm that number: in the README that we read the link to the paper was still a placeholder. The repository's documentation is the source that we stand on.",
    ],
  },
  {
    id: "about-metadata",
    title: "Why the metadata endpoint is always a denial",
    body: [
      "Machines in a cloud can ask a special address, mostly `169.254.169.254`, who they are. The answer may hold the credentials of the machine itself. Whoever can open a connection from that machine gets them; no password is asked for. Those credentials often open far more than the task at hand.",
      "An executor that runs foreign text never needs them. If a task needs an identity, it gets one of its own, short-lived and narrow, from a broker that the policy names. So the denial is fixed: no rule can lift it, and a policy file that tries does not load.",
      "It is fixed for all the forms that lead there: other numbers of other clouds, the whole link-local block, names such as `metadata.google.internal`, IPv6, addresses written in hexadecimal or inside another address, a permitted name that resolves there, a redirect that ends there. The decision and the risk are the same each time. What differs is the control, and that is what you are asked for.",
    ],
  },
  {
    id: "about-provider",
    title: "Why a call to the model still goes through a logging proxy",
    body: [
      "The agent cannot work without its model, so the call is legitimate and its risk is benign. It is also the largest way out that there is: everything the agent has read goes into it.",
      "A list of names does not help here, because the name is right. What can be wrong is the account (with a stranger's key the text lands with the stranger), the path (files instead of messages), the amount, or what is asked of the provider: while scoring, a search on the provider's side would look the answer up outside every wall of ours.",
      "A proxy can hold all of that: it puts the key in, so that the worker never has one; it permits the declared paths; it limits the size; it refuses the tools that are closed in this phase; and it writes each request down. An end-to-end connection could hold none of it. Hence `proxy+log`, and `logging-proxy` as the control.",
    ],
  },
  {
    id: "about-network",
    title: "What touches a network here, and what does not",
    body: [
      {
        caption: "Who talks to whom",
        head: ["When", "What happens", "Where packets go"],
        rows: [
          [
            "You play, drill, or replay a policy",
            "Your browser talks to the server that you started. The engine reads the attempt's line and decides. No name is looked up and nothing is dialed.",
            "Loopback only (`127.0.0.1`).",
          ],
          [
            "You press “run it”",
            "A worker makes the attempt for real, in its room: a network of its own with no way out, whose connections all arrive at the gateway. The gateway decides by the card (without the conditions for which it would have to open TLS), writes the record, and dials only what is permitted.",
            "Into a sealed range: two network namespaces joined to each other and to nothing else. There is no uplink, so nothing can leave the machine, whatever is wrong with the sandbox.",
          ],
          [
            "The target answers",
            "Stand-ins answer for every name: a small web server, a resolver with scripted answers, a metadata service on its real numbers. They count what arrives.",
            "The numbers are real and the places are not: they exist inside the range only.",
          ],
          [
            "You download a result, a card or a record",
            "The server makes it from your own data, and your browser saves it.",
            "Nowhere.",
          ],
        ],
      },
      "The page loads nothing from outside and sends nothing anywhere; its content security policy forbids it. There is no account, no statistics and no update check. Progress lies in your data folder.",
    ],
  },
  {
    id: "about-keys",
    title: "How the keys are made, and where one may differ",
    body: [
      "Every event is judged under one policy, the card that lies beside it. The key follows from the card, and is not anybody's taste: the same engine that guards real runs gives the decision, and a test compares engine and key for every event whose line shows what decides. Events that can be tried for real are tried for real as well, and a key that differs from what happened fails the build.",
      "Some things the card decides one way and a good colleague might decide another way. Those say so:",
      {
        list: [
          "A compiler fetched from the mirror while scoring is supply-chain here, since the card counts every refusal at a mirror so. Benign would be defensible.",
          "A package from the public registry is vetted-mirror-pinned, because the catalogue knows the place as a registry. Default-deny would stop it too.",
          "A name with a Cyrillic letter in it is allowlist-exact, because its spelling is regular and only looks like a listed one. One could also say canonicalise-host.",
          "A cloud's link-local clock is metadata-credentials, since the fixed denial of the block comes first. Time is harmless.",
        ],
      },
      "So learn how a call follows from a policy, and not this policy by heart. On the policy page you write your own, and the bank shows what it lets through and what it breaks.",
    ],
  },
  {
    id: "about-limits",
    title: "What the lab does not do, and the limits of the instrument",
    body: [
      {
        list: [
          "It teaches to judge attempts, not to attack. An event shows what a defender needs in order to recognize it. Attackers have reserved names (`.test`, `.example`), and real names stand only for what is legitimate.",
          "The gateway does not open TLS yet. Events that turn on what is inside are marked: you can answer them, and “run it” says that their control is not built, instead of showing a result that nobody saw.",
          "Nine events are few. One round says little about you, and sensitivity and bias from it are rough; the page says from how many events each figure comes. Over many rounds they mean something.",
          "The bank has some 170 events. Whoever plays often begins to recognize them; then the figures say how well you remember. The near pairs and your own policy hold longer.",
          "Nobody has shown that a good grade here makes a good decision at work. The lab measures agreement with a stated policy, under a clock, on events that somebody chose.",
          "A signed result says that this key signed these answers, and the points are computed again from them. It does not say who sat at the keyboard, nor who helped.",
          "What holds the sandbox, and what does not, is told by `stockade prove` and the documentation of the boundary; the lab's live runs are no substitute for that.",
        ],
      },
    ],
  },
  {
    id: "about-words",
    title: "Words",
    body: [
      {
        words: [
          ["attempt", "What the worker tries: open a connection, send a request, ask for a name, start a command, open a socket."],
          ["verdict", "The engine's decision on an attempt: `deny`, `proxy` (shown as proxy+log) or `allow`. If in doubt, deny."],
          ["risk", "What the attempt would lead to: one of seven words, among them benign."],
          ["control", "The protection that fits it best: one of 24 words."],
          ["phase", "Where the run stands: `setup`, `work`, `scoring`. It goes forward only."],
          ["identity", "Who asks: the `agent`, or the `grader` that scores it. They have rules of their own."],
          ["entry", "By which door the attempt came: as an ordinary connection (transparent), through the proxy, as a question for a name, as a command, as a socket."],
          ["policy card", "The one file that a pack's events are judged under."],
          ["room", "The worker's own network: it has no way out, and every connection in it arrives at the gateway."],
          ["seal", "What keeps the worker from starting programs that are not listed."],
          ["range", "The sealed small internet in which attacks and “run it” happen. It has no uplink."],
          ["ledger", "The record: each decision is written down before it is acted on."],
          ["leak", "Something that should have been denied was let through."],
          ["wrong block, breakage", "Something that should have passed was denied. It is a fault just as a leak is."],
          ["near pair", "Two events that look alike and differ in what decides."],
          ["sensitivity (d′)", "How well you tell apart what to deny from what to let through. 0 is guessing; the more, the better."],
          ["bias (c)", "Which way you lean if unsure: below 0 you deny more readily, above 0 you let through more readily."],
        ],
      },
    ],
  },
];

export function AboutPage({ at }) {
  useEffect(() => void (at && show(at)), [at]);
  return html`<main class="page prose about" id="main">
    <h1>About the lab</h1>
    <p class="lead">Learn the call on real traffic: what may leave, what the risk is, and which control fits.</p>
    <${Contents} sections=${SECTIONS} page="#/about" />
    ${SECTIONS.map((section) => html`<${Section} key=${section.id} ...${section} />`)}
    <h2>More</h2>
    <ul>
      <li><a href="#/reference">Controls and risks</a>, each with a sentence and an example</li>
      <li><a href="#/workshop">Workshop</a>, a guided half day</li>
    </ul>
  </main>`;
}

export { AboutPage as About };
export const about = () => html`<${AboutPage} />`;
