/** A round as a value: what is answered, what comes next, and the round after an answer or a hint. Pure. */

/** @returns the feedback of an answered event, else null */
export const feedbackOf = (event) => event?.feedback ?? null;

/** @returns {number | null} the event whose turn it is; the server sends none beyond it */
export const firstOpen = (round) => (round.status === "open" ? round.current : null);

export const eventAt = (round, index) => round.events.find((one) => one.index === index) ?? null;

export const isDone = (round) => round.status === "done";

export const answered = (round) => round.events.map((event) => ({ event, feedback: feedbackOf(event) })).filter((one) => one.feedback);

export function withFeedback(round, feedback, summary) {
  const events = round.events.map((one) => (one.index === feedback.index ? { ...one, feedback } : one));
  return { ...round, ...summary, events };
}

export function withHint(round, index, { hint, left, next_cost }) {
  const events = round.events.map((one) => (one.index === index
    ? { ...one, hints: { taken: [...one.hints.taken.filter((old) => old.number !== hint.number), hint], left, next_cost } }
    : one));
  return { ...round, events };
}
