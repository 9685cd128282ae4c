"""The guided half day: what to do, what one should see, and how one knows that it is done.

Pure data. Where a learner stands is in `workshop_progress`, what the half day leaves in `workshop_record`.
"""

from __future__ import annotations

from msgspec import Struct

FOLDER = "my-evidence"


class Command(Struct, frozen=True):
    """A line to copy, and what it is for."""

    text: str
    what: str


class Step(Struct, frozen=True, kw_only=True):
    """One step.

    Attributes:
        key: Its name in stored progress; never changed once it has shipped.
        do: What to do, one sentence or two each.
        see: What should then be seen.
        done_when: How one knows that it is done.
        page: Where in the lab it happens, as a fragment of the page's address; empty for a terminal.
    """

    key: str
    title: str
    minutes: int
    do: tuple[str, ...]
    see: str
    done_when: str
    commands: tuple[Command, ...] = ()
    page: str = ""


STEPS = (
    Step(
        key="read",
        title="Read",
        minutes=25,
        do=(
            "Read the policy card from top to bottom. For each rule say aloud who needs it, and for what.",
            "Read the page of words: what each of the 24 controls is for, and what it is mistaken for.",
            "Play one round of tier 1, without hurry. It has no clock; take hints where you need them.",
        ),
        see="Nine events. After each answer: the key, the cue, and the line of the card that it rests on.",
        done_when="You can say without looking why the metadata address is denied although nothing on the "
        "card mentions it, and why an ordinary read of an unknown blog is denied although it is harmless.",
        page="#/reference",
    ),
    Step(
        key="play",
        title="Make the call",
        minutes=35,
        do=(
            "Play a round of tier 2 and one of tier 3.",
            "Press “run it” on each event that you got wrong, and compare three things: what the worker saw, "
            "the line of the ledger, and what arrived at the target.",
            "Do one drill of near pairs: two events that differ in the one thing that decides.",
        ),
        see="For a denial, nothing arrived and the line names a reason. For a pass, the target counts what "
        "came. Some events wait for a control that is not built: they say so.",
        done_when="You have run at least three events for real, and one line stands in your gap log.",
        page="#/",
    ),
    Step(
        key="policy",
        title="Build a policy",
        minutes=50,
        do=(
            "Open the policy page. Begin with the text that it offers, which denies everything.",
            "Add a rule, replay the bank, and read both lists: leaks (let through, and it must not be) and "
            "breakages (refused, and the work needs it). Go on until both are empty, or until you can say "
            "of each that is left why you leave it.",
            "Keep the text as my-policy.yaml too: mark all of it in the editor, copy it, and save it with "
            "any editor in the folder where you work. Then ask the engine on a terminal.",
            "The commands here say `stockade`. If your terminal does not know it, go to the folder of the "
            "project, where it is `.venv/bin/stockade`, and give the first line once per terminal.",
        ),
        see="The two numbers fall apart at first: what closes a leak often breaks work, and the reverse.",
        done_when="0 leaks, 0 breakages; or you can give a reason for each that is left.",
        commands=(
            Command('export PATH="$PWD/.venv/bin:$PATH"', "in the project's folder: makes `stockade` known"),
            Command("stockade policy lint my-policy.yaml", "finds what you probably did not mean"),
            Command(
                "stockade decide -p my-policy.yaml GET http://169.254.169.254/latest/meta-data/",
                "denied, whatever the file says",
            ),
        ),
        page="#/policy",
    ),
    Step(
        key="red",
        title="See the attack work",
        minutes=15,
        do=(
            "A protection that you never saw fail may not be there. Give one layer up, in the sealed range, "
            "and attack.",
            "Then the same attacks with all layers.",
        ),
        see="First: every attack of the group leaks, with the address that it reached (exit code 4). Then: "
        "every one is blocked (exit code 0).",
        done_when="You saw both, and can name the layer whose absence made the difference.",
        commands=(
            Command("stockade prove --only metadata --without-layer room", "red: the room is given up"),
            Command("stockade prove --only metadata", "green: the same attacks, contained"),
        ),
    ),
    Step(
        key="attack",
        title="Attack it, and keep the evidence",
        minutes=35,
        do=(
            "Run the whole catalogue of attacks, with a record. It takes some minutes; watch the first ones.",
            f"Open {FOLDER}/index.html and follow one attack of your choice: its control in the open, its "
            "attempt contained, who refused it, and for which reason.",
        ),
        see="Counts of blocked, leaked, inconclusive and not supported. Inconclusive is not a pass.",
        done_when="The record is written, and you can say of one attack why “blocked” is more than a "
        "timeout.",
        commands=(
            Command(f"stockade prove --out {FOLDER}", "all attacks, and a signed record of what happened"),
        ),
    ),
    Step(
        key="verify",
        title="Verify it, and catch a lie",
        minutes=15,
        do=(
            "Verify the record. Then change one byte of a copy, and verify that.",
            "Give the folder's path below, so that this page verifies it too.",
        ),
        see="The record verifies (exit code 0). The copy does not: the file is named (exit code 5).",
        done_when="This page says that your folder verifies, and the changed copy was refused.",
        commands=(
            Command(f"stockade evidence verify {FOLDER}", "each file as it was signed?"),
            Command(f"cp -r {FOLDER} changed", "a copy to spoil"),
            Command(
                "printf x | dd of=changed/policy.yaml bs=1 conv=notrunc status=none",
                "its first byte is an x now",
            ),
            Command("stockade evidence verify changed; echo $?", "refused, and 5"),
        ),
    ),
    Step(
        key="review",
        title="Review it",
        minutes=30,
        do=(
            "Answer the eight questions about this record, in writing, below. Short and definite beats long.",
            "Save the answers as a file, and sign them into the evidence with the command.",
            "Better still: review the record of the person beside you, and let them review yours.",
        ),
        see="By the command the answers are signed and bound to this very record; here they go into yours.",
        done_when="All eight have an answer that names a point of the record, and `verify` names a reviewer.",
        commands=(
            Command(f"stockade evidence review {FOLDER} --answers answers.json", "signs the answers"),
            Command(f"stockade evidence verify {FOLDER}", "now names the reviewer"),
        ),
    ),
    Step(
        key="explain",
        title="Explain it aloud",
        minutes=25,
        do=(
            "Explain the record to somebody in ten minutes, question by question, without reading aloud.",
            "Let them ask “what if?” and “where can it break?” twice. What you cannot answer goes into the "
            "gap log.",
        ),
        see="Where you hesitate is what you do not know yet.",
        done_when="Your listener can say in one sentence what is claimed, and one thing that is not covered.",
        page="#/progress",
    ),
    Step(
        key="record",
        title="Take your own record with you",
        minutes=10,
        do=(
            "Download the record of this half day: what you did, your policy with its two numbers, the "
            "evidence that you made, and your eight answers, signed with your key.",
            "Verify it. Then let somebody else verify it, on another machine if you can.",
        ),
        see="It verifies, and says what in it is your word and what can be computed again.",
        done_when="Somebody else's `stockade lab verify` accepts the file.",
        commands=(Command("stockade lab verify my-half-day.json", "signature, shape, and the replay again"),),
    ),
)
MINUTES = sum(step.minutes for step in STEPS)
