/** A round or a drill: one event after the other, answered, explained, and drawn into log and map. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { say } from "./announce.js";
import { AnswerForm, emptyAnswer, isWhole } from "./answer.js";
import { api } from "./api.js";
import { CardPanel } from "./card.js";
import { Clock } from "./clock.js";
import { EventView } from "./event.js";
import { Feedback } from "./feedback.js";
import { HintButton, HintsTaken } from "./hints.js";
import { keep, recall } from "./kept.js";
import { useKeys } from "./keys.js";
import { Fault, useLab, useLoaded, usePlaying } from "./lab.js";
import { EgressLog } from "./log.js";
import { RiskMap } from "./map.js";
import { eventAt, feedbackOf, firstOpen, isDone, withFeedback, withHint } from "./round.js";
import { go, href } from "./router.js";
import { tellOtherTabs, useOtherTabs } from "./tabs.js";
import { shown, wholeOf } from "./words.js";

export function PlayPage({ id }) {
  const { value: round, error, again, set } = useLoaded(() => api.round(id), [id]);
  useOtherTabs(again);
  usePlaying(round?.kind);
  if (!round) {
    return html`<main class="page" id="main"><h1>Round</h1>${error && html`<${NoRound} error=${error} again=${again} />`}</main>`;
  }
  return html`<${Round} round=${round} set=${set} again=${again} fault=${error} />`;
}

/** A round of another learner, or one that was thrown away, does not come by trying again. */
export function NoRound({ error, again }) {
  if (error.code !== "no-such-round") return html`<${Fault} error=${error} again=${again} />`;
  return html`<p class="banner">You have no such round: it may be another learner’s, or was removed. <a href=${href()}>To the start</a></p>`;
}

function Round({ round, set, again, fault }) {
  const { state, refresh } = useLab();
  const [index, setIndex] = useState(() => firstOpen(round) ?? round.events.at(-1)?.index ?? 0);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const event = eventAt(round, index);
  const feedback = feedbackOf(event);
  const [answer, choose] = useAnswer(round.id, index);
  const title = useRef(null);
  const firstIndex = useRef(index);
  const closed = round.status === "broken-off";

  const attempt = async (act) => {
    setError(null);
    try {
      return await act();
    } catch (refused) {
      setError(refused);
      return null;
    }
  };

  const submit = async () => {
    if (!isWhole(answer) || busy || feedback) return;
    setBusy(true);
    await attempt(async () => {
      const said = await answerOnce(round.id, { index, ...answer });
      set((now) => withFeedback(now, said.feedback, said.round));
      say(sayResult(said.feedback, said.again));
      tellOtherTabs();
      if (isDone(said.round)) refresh();
      else again(); // brings the next event, while the learner reads about this one
    });
    setBusy(false);
  };

  const takeHint = () => attempt(async () => {
    const said = await api.hint(round.id, index);
    set((now) => withHint(now, index, said));
    say(`Hint ${said.hint.number}: ${said.hint.text}`);
  });

  const next = () => attempt(async () => {
    const open = firstOpen(round);
    if (open === null) return go("round", round.id, "debrief");
    if (!eventAt(round, open)) {
      const fresh = await api.round(round.id);
      set(() => fresh);
    }
    setIndex(open);
    return undefined;
  });

  useShowing(round, event, feedback);
  useLayoutEffect(() => {
    // The heading that had the focus while this was fetched is gone.
    if (document.activeElement === document.body) title.current?.focus({ preventScroll: true });
  }, []);
  // Before the next paint: later it would take the focus away from where the first keys have led.
  useLayoutEffect(() => {
    if (title.current && !feedback && index !== firstIndex.current) title.current.focus();
    firstIndex.current = index;
  }, [index]);

  useKeys((key) => {
    if (key === "n" && feedback) return next(), true;
    return false;
  });

  if (!event) return html`<main class="page" id="main"><h1>Round</h1><p>This round was broken off before its first answer. <a href=${href()}>To the start</a></p></main>`;

  return html`<main class="play" id="main">
    <h1 class="unseen">${round.kind === "drill" ? "Drill" : `Round, tier ${round.tier}`}</h1>
    <${Bar} round=${round} index=${index} setIndex=${setIndex} />
    ${fault && html`<${Fault} error=${fault} again=${again} />`}
    <div class="bench">
      <div class="asked">
        <${EventView} event=${event} number=${index + 1} count=${round.count} title=${title}
          aside=${!feedback && html`<${Clock} limit_s=${round.clock_s} event=${event} />`} />
      </div>
      <aside class="beside" aria-label="Policy card"><${CardPanel} event=${index} ...${placeOnCard(event, feedback)} /></aside>
      <div class="work">
        ${error && html`<${Fault} error=${error} />`}
        ${closed && !feedback && html`<p class="banner">This round was broken off. <a href=${href()}>To the start</a></p>`}
        ${feedback && html`<${Feedback} key=${index} round=${round} feedback=${feedback} next=${next} isLast=${firstOpen(round) === null} />`}
        ${!feedback && !closed && html`<${HintsTaken} hints=${event.hints} />
          <${AnswerForm} key=${index} attempt=${event.attempt} words=${state.words} answer=${answer} choose=${choose} submit=${submit} busy=${busy}
            hint=${html`<${HintButton} key=${index} hints=${event.hints} take=${takeHint} />`} />`}
      </div>
      <section class="drawn" aria-label="What has passed so far">
        <${EgressLog} round=${round} current=${index} open=${(at) => setIndex(at)} />
        <${RiskMap} round=${round} words=${state.words} />
      </section>
    </div>
  </main>`;
}

/** Number, points and streak, and the way back to events that were answered. */
function Bar({ round, index, setIndex }) {
  const percent = `${round.points} ${Math.abs(round.points) === 1 ? "point" : "points"}`;
  return html`<div class="bar">
    <p class="count"><strong>Event ${index + 1}</strong> of ${round.count}</p>
    <ol class="steps" aria-label="Events">${Array.from({ length: round.count }, (_, at) => {
      const feedback = feedbackOf(eventAt(round, at));
      const word = feedback ? { true: "right", half: "partly right", false: "wrong" }[String(wholeOf(feedback.right))] : "open";
      const can = feedback || at === firstOpen(round);
      return html`<li><button type="button" class=${`step is-${word.replace(" ", "-")}`} disabled=${!can} aria-current=${at === index ? "step" : undefined}
        aria-label=${`Event ${at + 1}, ${word}`} onClick=${() => setIndex(at)}>${at + 1}</button></li>`;
    })}</ol>
    <p class="score">${round.kind === "drill" ? "Drill" : percent}</p>
    <p class="streak">Streak <strong>${round.streak}</strong>${round.best_streak > round.streak ? html` <span class="soft">(best ${round.best_streak})</span>` : ""}</p>
  </div>`;
}

/** Where on the card the answer rests, or where the last hint leads. */
function placeOnCard(event, feedback) {
  if (feedback) return { line: feedback.rests_on.line, last: feedback.rests_on.last };
  const line = Number(/\b[Ll]ine (\d+)/.exec(event.hints.taken.at(-1)?.text ?? "")?.[1]) || null;
  return { line, last: line };
}

/** An answer that was given before, here or in another tab, shows what was said then. */
async function answerOnce(id, answer) {
  try {
    return await api.answer(id, answer);
  } catch (refused) {
    if (refused.status !== 409 || !refused.body.feedback) throw refused;
    return { feedback: refused.body.feedback, round: await api.round(id), again: true };
  }
}

function sayResult({ right, points, key }, again) {
  const whole = { true: "Right.", half: "Partly right.", false: "Wrong." }[String(wholeOf(right))];
  const before = again ? "This event was answered before; the first answer counts. " : "";
  return `${before}${whole} The call is ${shown(key.decision)}, risk ${key.risk}, control ${key.control}. ${points.total} points.`;
}

/** What is chosen and not yet sent survives a reload. */
function useAnswer(id, index) {
  const name = `answer-${id}-${index}`;
  const [held, setHeld] = useState({ name, answer: recall(name, emptyAnswer, sessionStorage) });
  const answer = held.name === name ? held.answer : recall(name, emptyAnswer, sessionStorage);
  const choose = (part, word) => {
    const answer_ = { ...answer, [part]: word };
    keep(name, answer_, sessionStorage);
    setHeld({ name, answer: answer_ });
  };
  return [answer, choose];
}

/** The server starts an event's time at its first showing. */
function useShowing(round, event, feedback) {
  useEffect(() => {
    if (!event || feedback || round.status !== "open" || event.shown_ms != null) return;
    api.show(round.id, event.index).catch(() => {}); // without it the event has no bonus; the answer says what is wrong
  }, [event?.index]);
}
