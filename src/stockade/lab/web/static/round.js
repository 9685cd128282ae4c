/** A round as a value: what is answered, what comes next, and the round after an answer or a hint. Pure. */

/** @returns the feedback of an answered event, else null */
export const feedbackOf = (event) => event.feedback ?? (event.key ? event : null);

/** @returns {number | null} the first event without an answer */
export function firstOpen(round) {
  const at = round.events.findIndex((one) => !feedbackOf(one));
  return at < 0 ? null : at;
}

export const isDone = (round) => round.status === "done";

export const answered = (round) => round.events.map((event) => ({ event, feedback: feedbackOf(event) })).filter((one) => one.feedback);

export function withFeedback(round, feedback, summary) {
  const events = round.events.map((one, at) => (at === feedback.index ? { ...one, feedback } : one));
  return { ...round, ...summary, events };
}

export function withHint(round, index, { hint, left, next_cost }) {
  const events = round.events.map((one, at) => (at === index
    ? { ...one, hints: { taken: [...one.hints.taken.filter((old) => old.number !== hint.number), hint], left, next_cost } }
    : one));
  return { ...round, events };
}
